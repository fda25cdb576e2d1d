"""The arrays that a score learns, and a score together with them: what a call computes for any of its pairs.

`LEARNED` gives the arrays of each score, one set per head: their shapes ("K" is the width, "length" the number of
positions) and their initializers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.score import PLAIN, additive, concat, cosine, dot, gat, general, location, soft_cap
from attnlab.ops.tree import pytree


def _normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Draws weights of variance 1/width, where the width is the axis that is summed over.

    For `concat`, which sums over two halves, it is the width of each half.
    """
    return jax.random.normal(key, shape, jnp.float32) * shape[-2 if len(shape) > 1 else 0] ** -0.5


def _rows(key: Array, shape: tuple[int, ...]) -> Array:
    """As `_normal`, for vectors stacked along the first axis: the last axis is summed over."""
    return jax.random.normal(key, shape, jnp.float32) * shape[-1] ** -0.5


def _identity(key: Array, shape: tuple[int, ...]) -> Array:
    """Initializes a matrix so that the score starts as the scaled dot product."""
    return jnp.eye(shape[0], dtype=jnp.float32) * shape[0] ** -0.5


def _ten(key: Array, shape: tuple[int, ...]) -> Array:
    """Initializes the logarithm of a factor so that the factor starts at 10."""
    return jnp.full(shape, math.log(10.0), jnp.float32)


LEARNED: dict[Callable, dict[str, tuple[tuple, Callable]]] = {
    general: {"w": (("K", "K"), _identity)},
    additive: {"w_q": (("K", "K"), _normal), "w_k": (("K", "K"), _normal), "w": (("K",), _normal)},
    concat: {"w": ((2, "K", "K"), _normal), "u": (("K",), _normal)},
    location: {"w": (("K", "length"), _normal)},
    gat: {"a": ((2, "K"), _rows)},
    cosine: {"log_scale": ((), _ten)},
}


def shapes(score: Callable, length: int) -> dict[str, tuple]:
    """Returns the shapes of the arrays that a score learns, one set per head.

    Args:
      score: a function of `SCORES`.
      length: number of key positions, for a score that learns one column per position.

    Returns:
      {name: shape}, with "K" for the width. Empty if the score learns nothing.
    """
    return {name: _sized(shape, length) for name, (shape, _) in LEARNED.get(score, {}).items()}


def initial(score: Callable, length: int, key: Array, K: int) -> dict[str, Array]:
    """Returns initial values of the arrays that a score learns.

    Args:
      score: a function of `SCORES`.
      length: number of key positions, for a score that learns one column per position.
      key: a random key.
      K: width of queries and keys.

    Returns:
      {name: array}, in float32. Empty if the score learns nothing.
    """
    table = LEARNED.get(score, {})
    keys = jax.random.split(key, max(1, len(table)))
    return {
        name: start(each, tuple(K if size == "K" else size for size in _sized(shape, length)))
        for each, (name, (shape, start)) in zip(keys, table.items(), strict=False)
    }


def is_length_bound(score: Callable) -> bool:
    """Returns whether a score learns something for every position, and so is bound to a length."""
    return any("length" in shape for shape, _ in LEARNED.get(score, {}).values())


def _sized(shape: tuple, length: int) -> tuple:
    """Replaces "length" in a shape."""
    return tuple(length if size == "length" else size for size in shape)


Bias = Callable[..., Array]
"""A function `(q, i, j) -> [T S]` of queries and positions that is added to scores. Traced arrays in it are leaves."""


@pytree
@dataclass(frozen=True, eq=False)
class Scores:
    """A score with its learned arrays, an optional cap and an optional bias: `(q, k, i, j) -> [T S]` for any pairs.

    The cap is applied to the score, and the bias is added after it.

    Arrays learned per position are read at the positions j of the keys. The score of a key at a position beyond them is
    NaN.
    """

    score: Callable = field(metadata={"static": True})
    """A function of `SCORES`, or any with the same signature."""
    learned: dict[str, Array]
    """The learned arrays of one head, by name."""
    bias: Bias | None = None
    """A callable pytree `(q, i, j) -> [T S]` whose result is added to the scores, or None."""
    softcap: float | None = field(default=None, metadata={"static": True})
    """The bound of `attnlab.ops.score.soft_cap`, or None for no bound."""

    def __call__(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"], i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]
    ) -> Float[Array, "T S"]:
        """Returns the scores [T S] of queries q at positions i and keys k at positions j."""
        scores = self._placed(q, k, j) if is_length_bound(self.score) else self.score(q, k, **self.learned)
        scores = scores if self.softcap is None else soft_cap(scores, self.softcap)
        return scores if self.bias is None else scores + self.bias(q, i, j).astype(scores.dtype)

    @property
    def product(self) -> bool:
        """Whether the scores are the plain dot product, without a bias or a cap."""
        return self.score is dot and self.bias is None and self.softcap is None

    def plain(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"]
    ) -> tuple[Float[Array, "T H"], Float[Array, "S H"], Scores]:
        """Transforms queries and keys so that the score becomes their dot product, if that is possible.

        This transforms T + S rows once, instead of doing work for every pair.

        Returns:
          (queries [T H], keys [S H], scores). The arguments themselves and `self` if there is no such form.
        """
        if self.bias is not None or self.score not in PLAIN:
            return q, k, self
        return *PLAIN[self.score](q, k, **self.learned), Scores(dot, {}, softcap=self.softcap)

    def _placed(self, q, k, j):
        """Computes a length-bound score with the learned columns at the keys' positions."""
        table, columns, inside = LEARNED[self.score], dict(self.learned), jnp.ones(j.shape, bool)
        for name in [name for name, (shape, _) in table.items() if shape[-1] == "length"]:
            inside = (j >= 0) & (j < columns[name].shape[-1])
            columns[name] = columns[name][..., jnp.where(inside, j, 0)]
        # NaN is inserted after the product. In the learned array it would reach gradients of keys that no query sees.
        return jnp.where(inside[None, :], self.score(q, k, **columns), jnp.nan)
