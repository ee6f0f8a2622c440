"""Policies: networks written once over `ops`, their weights, and the NumPy side that acts."""
