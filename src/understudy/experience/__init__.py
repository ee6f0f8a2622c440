"""Experience: the record of a match, and the durable queue that carries it to the learner."""
