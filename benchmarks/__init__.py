"""Benchmarks: every speed and strength that we claim, printed beside its peer."""
