"""The common parts of all tasks: interfaces, batching, checks, metrics and classification."""
