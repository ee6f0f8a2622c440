"""The promotion gate: whether a version has earned play, from the results of matches. Pure."""
