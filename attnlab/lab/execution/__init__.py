"""Training of the variants of a study, in one process or several, with a display of progress."""
