"""Pure functions of learning under JAX: returns, losses, gradient descent, and the update."""
