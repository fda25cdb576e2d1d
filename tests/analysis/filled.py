"""Networks with parameters that are drawn on the host, so that initialization compiles nothing."""

from functools import cache

import jax
import numpy as np


@cache
def filled(config, shape):
    """Returns a network of the given config and shape, with parameters of variance 1/4."""
    like, rng = jax.eval_shape(lambda: config.create(jax.random.key(0), shape)), np.random.default_rng(0)
    return jax.tree.map(lambda x: rng.normal(0, 0.5, x.shape).astype(x.dtype), like)
