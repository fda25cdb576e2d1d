"""A run on disk: its folder, the file of its study, its artifacts, and whether it is the one asked for."""
