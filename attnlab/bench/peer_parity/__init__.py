"""Functions of other libraries that compute what ours compute, compared number by number."""
