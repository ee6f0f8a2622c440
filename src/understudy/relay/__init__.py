"""An object store between machines: matches go to the learner, versions come back."""
