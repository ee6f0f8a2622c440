"""The learner behind a server: items sampled from a replay, one batch after the other."""
