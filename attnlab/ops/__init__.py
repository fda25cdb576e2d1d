"""Pure functions of attention: one example, one head; lifted by `jax.vmap`. Imports jax, numpy and jaxtyping alone."""

import jax

from attnlab.ops import oldest

# Before anything that an older one may lack.
oldest.require(jax.__version_info__)

# isort: split
from attnlab.ops import feature, layer, linear, mask, position, score, softmax  # noqa: E402

__all__ = ["feature", "layer", "linear", "mask", "position", "score", "softmax"]
