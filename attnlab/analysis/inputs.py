"""Random inputs for any mechanism, including the extra inputs that it declares.

Parity checks and benchmarks use them.
"""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import DTypeLike

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.inputs import shape_of

Inputs = tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]


def draw(mechanism: Mechanism, T: int, K: int, V: int, dtype: DTypeLike = np.float64, seed: int = 0) -> Inputs:
    """Draws standard normal inputs for a mechanism.

    Numbers are drawn in float64, then rounded to the dtype. In float64 all digits are random, so that a sum kept in
    lower precision shows.

    Args:
      mechanism: the mechanism.
      T: number of tokens.
      K: width of queries and keys.
      V: width of values.
      dtype: dtype of the inputs. Defaults to float64.
      seed: seed of the generator. Defaults to 0.

    Returns:
      (q [T K], k [T K], v [T V], extras). Learned arrays have their initial values. Arrays that differ by head are
      those of the second of two heads.
    """
    generator = np.random.default_rng(seed)
    normal = lambda *shape: generator.standard_normal(shape).astype(dtype)
    q, k, v = normal(T, K), normal(T, K), normal(T, V)
    per_token = {**mechanism.tokens, **mechanism.queries}
    tokens = {name: normal(T, *shape_of(shape, K, V)) for name, shape in sorted(per_token.items())}
    learned = mechanism.initial(jax.random.key(seed), K, V)
    constants = {name: x[-1] for name, x in mechanism.heads(2).items()}
    return q, k, v, tokens | {name: np.asarray(x).astype(dtype) for name, x in (learned | constants).items()}


def rows(mechanism: Mechanism, inputs: Inputs, chosen: slice | np.ndarray) -> Inputs:
    """Returns the inputs of the chosen tokens; learned arrays stay whole.

    Args:
      mechanism: the mechanism.
      inputs: the inputs (q, k, v, extras), as `draw` returns them.
      chosen: the tokens: a slice, indices, or a boolean array [T].
    """
    q, k, v, extra = inputs
    per_token = {**mechanism.tokens, **mechanism.queries}
    return q[chosen], k[chosen], v[chosen], {n: x[chosen] if n in per_token else x for n, x in extra.items()}


def fill_padding_with_nan(mechanism: Mechanism, inputs: Inputs, keep: np.ndarray) -> Inputs:
    """Returns the inputs with NaN at every token that is not kept, to check that padding has no effect.

    Args:
      mechanism: the mechanism.
      inputs: the inputs (q, k, v, extras), as `draw` returns them.
      keep: which tokens are kept [T].
    """
    bad = lambda x: np.where(keep.reshape(-1, *[1] * (x.ndim - 1)), x, np.asarray(np.nan, x.dtype))
    q, k, v, extra = inputs
    per_token = {**mechanism.tokens, **mechanism.queries}
    return bad(q), bad(k), bad(v), {n: bad(x) if n in per_token else x for n, x in extra.items()}
