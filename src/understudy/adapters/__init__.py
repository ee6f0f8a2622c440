"""Adapters: what connects a game to a protocol or to a library."""
