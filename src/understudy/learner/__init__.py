"""The learner: from episodes to versions. JAX lives here."""
