"""What the server for live games and the dashboard share: authentication, refusals, listening."""
