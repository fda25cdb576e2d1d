"""Files of all kinds: find, fetch and verify them; read archives and arrays."""
