"""Reading runs back: outcomes, estimates, comparisons and the table."""
