"""Excludes a file that is not a test from collection."""

# study.py adds a model to attnlab.MODELS, which is meant only for the process that runs it.
collect_ignore = ["study.py"]
