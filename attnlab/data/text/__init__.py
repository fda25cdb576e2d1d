"""Texts: readers of data sets, tokenizers, vocabularies."""
