"""HTML as values, and the charts and tables that the report and the dashboard are made of."""
