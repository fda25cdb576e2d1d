"""Text: readers of data sets, tokenizers and vocabularies."""
