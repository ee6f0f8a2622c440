"""Curricula: stages with criteria, and which one a run is in. Pure."""
