"""Promotion of a run's versions: assignments on disk, candidates, and who plays each match."""
