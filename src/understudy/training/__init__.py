"""Training sessions in the arena, in Gymnasium and PettingZoo environments, and of populations."""
