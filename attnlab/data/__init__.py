"""Arrays on the host: fetch, verify, read, encode, batch. numpy and the standard library; never jax."""
