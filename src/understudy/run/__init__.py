"""Processes: where the rooms are put together, one small module per process."""
