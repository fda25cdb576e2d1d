"""Analysis of models: what a model costs, and what its attention does."""
