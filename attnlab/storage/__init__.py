"""Files that survive: checksums, fsync, JSON, JSON lines, the lock. It imports nothing else of attnlab."""
