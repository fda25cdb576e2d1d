"""Pure functions of attention on one example and one head; `jax.vmap` adds batch and heads.

This package imports only jax, numpy and jaxtyping.
"""

import jax

from attnlab.ops import oldest

# Check the version before importing anything that an older jax may lack.
oldest.check_jax_version(jax.__version_info__)

# isort: split
from attnlab.ops import feature, layer, linear, mask, position, score, softmax  # noqa: E402

__all__ = ["feature", "layer", "linear", "mask", "position", "score", "softmax"]
