"""Training in environments of others: the game on the host, the learner compiled."""
