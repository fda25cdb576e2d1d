"""What is no test."""

# It adds a model to attnlab.MODELS, which is meant for the process that runs it.
collect_ignore = ["study.py"]
