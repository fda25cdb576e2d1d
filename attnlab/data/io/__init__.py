"""Files of any kind: finding, fetching and verifying them, archives, arrays in files."""
