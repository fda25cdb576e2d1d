"""What all tasks share: the contract, batching, checks, metrics, and problems of classes."""
