"""The older StarCraft II bot: its API, its experience files and its models."""
