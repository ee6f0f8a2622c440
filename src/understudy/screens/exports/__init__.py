"""Exports of a run for other programs: tables as CSV or Parquet, with a documented schema."""
