"""Matches of built-in games under NumPy: one to live through, many at once to judge by."""
