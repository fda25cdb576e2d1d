"""Training: state, optimiser, loop, checkpoints. Knows a task by its contract and nothing of attention."""
