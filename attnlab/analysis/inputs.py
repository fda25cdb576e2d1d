"""Numbers for any mechanism, whatever extras it declares: what parity and the bench feed."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.inputs import shape_of

Inputs = tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]


def draw(mechanism: Mechanism, T: int, K: int, V: int, dtype: Any = np.float64, seed: int = 0) -> Inputs:
    """(q [T K], k [T K], v [T V], extras) of standard normal numbers; learned arrays as the mechanism starts them.

    What differs by head is that of the last of two heads.
    Drawn in float64, then rounded: in float64 every digit counts, so that a sum kept in less shows.
    """
    generator = np.random.default_rng(seed)
    normal = lambda *shape: generator.standard_normal(shape).astype(dtype)
    q, k, v = normal(T, K), normal(T, K), normal(T, V)
    tokens = {name: normal(T, *shape_of(shape, K, V)) for name, shape in sorted(mechanism.tokens.items())}
    learned = mechanism.initial(jax.random.key(seed), K, V)
    constants = {name: x[-1] for name, x in mechanism.heads(2).items()}
    return q, k, v, tokens | {name: np.asarray(x).astype(dtype) for name, x in (learned | constants).items()}


def rows(mechanism: Mechanism, inputs: Inputs, chosen: Any) -> Inputs:
    """The inputs of some tokens alone; what is learned stays whole."""
    q, k, v, extra = inputs
    return q[chosen], k[chosen], v[chosen], {n: x[chosen] if n in mechanism.tokens else x for n, x in extra.items()}


def spoil(mechanism: Mechanism, inputs: Inputs, keep: np.ndarray) -> Inputs:
    """The inputs with NaN at every token that is not kept: what nobody may see must not matter."""
    bad = lambda x: np.where(keep.reshape(-1, *[1] * (x.ndim - 1)), x, np.asarray(np.nan, x.dtype))
    q, k, v, extra = inputs
    return bad(q), bad(k), bad(v), {n: bad(x) if n in mechanism.tokens else x for n, x in extra.items()}
