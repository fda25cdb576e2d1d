"""Graphs: readers of data sets, and graphs drawn from a random model."""
