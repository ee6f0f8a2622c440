"""Compiled self-play: games, policies and opponents in one program, under JAX."""
