"""A run on disk: its folder, the file of its study, its artifacts, and the check of its identity."""
