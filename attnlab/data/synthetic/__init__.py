"""Data that are generated from a seed."""
