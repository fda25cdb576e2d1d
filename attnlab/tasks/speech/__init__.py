"""Tasks on recordings: classes of words, strings of words."""
