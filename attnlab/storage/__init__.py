"""Crash-safe files: checksums, fsync, JSON, JSON lines and the lock. It imports nothing else of attnlab."""
