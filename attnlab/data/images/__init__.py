"""Images: readers of data sets and of a user's own image files."""
