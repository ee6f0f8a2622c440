"""Who plays environments: this process, worker processes beside it, or Ray actors on a cluster."""
