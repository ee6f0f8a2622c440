"""Training in Gymnasium and PettingZoo environments: NumPy plays, JAX learns."""
