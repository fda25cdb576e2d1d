"""Tasks whose data are generated from a seed."""
