"""Training the variants of a study: in one process or several, with their progress."""
