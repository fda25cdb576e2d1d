"""Training: state, optimiser, loop and checkpoints.

It uses a task only through its interface, and does not depend on attention.
"""
