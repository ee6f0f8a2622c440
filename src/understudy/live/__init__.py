"""The live side: the facade that a bot uses. Needs numpy and msgspec alone."""
