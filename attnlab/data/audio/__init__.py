"""Recordings: wav files, log-mel frames, readers of data sets."""
