"""Population-based training: the worst agents are replaced by mutated copies of the best."""
