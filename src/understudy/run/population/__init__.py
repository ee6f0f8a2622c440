"""Populations: agents that are trained side by side, and whose worst give way to the best."""
