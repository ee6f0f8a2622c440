"""Our two-player games as PettingZoo environments."""
