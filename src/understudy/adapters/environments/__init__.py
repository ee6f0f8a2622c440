"""Gymnasium and PettingZoo environments: made by name, played by turns, with players on sides."""
