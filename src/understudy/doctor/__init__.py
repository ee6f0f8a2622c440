"""What is wrong with a run, how sure that is, and what to do next: checks on a run's own data."""
