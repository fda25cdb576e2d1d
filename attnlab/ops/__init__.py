"""Pure functions of attention: one example, one head; lifted by `jax.vmap`. Imports jax alone."""
