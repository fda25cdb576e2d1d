"""Looking inside: what a model costs, and where its attention goes."""
