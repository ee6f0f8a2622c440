"""Judges players by name: evaluations, tournaments, ratings, gate reports, analyses, replays."""
