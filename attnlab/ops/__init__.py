"""Pure functions of attention: one example, one head; lifted by `jax.vmap`. Imports jax, numpy and jaxtyping alone."""

from attnlab.ops import feature, layer, linear, mask, position, score, softmax

__all__ = ["feature", "layer", "linear", "mask", "position", "score", "softmax"]
