"""The bench: time and memory of mechanisms as sequences grow, beside peers, under this machine's roof."""
