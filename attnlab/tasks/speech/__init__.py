"""Tasks on recordings: single spoken words and strings of them."""
