"""The bench: time and memory of mechanisms as sequences grow, compared with peers and with the machine's roofline."""
