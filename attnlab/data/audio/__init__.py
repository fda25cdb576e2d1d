"""Audio recordings: wav files, log-mel frames and readers of data sets."""
