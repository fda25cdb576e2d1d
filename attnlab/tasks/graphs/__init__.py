"""Tasks on graphs: classes of nodes."""
