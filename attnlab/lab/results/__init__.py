"""Reading runs back: outcomes, estimates, comparisons, the table."""
