"""Our games as Gymnasium environments, and Gymnasium's spaces as ours."""
