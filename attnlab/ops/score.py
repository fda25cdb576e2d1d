"""Scores: how well a query and a key fit, for every pair, before softmax.

Each is `(q [T K], k [S K], **learned) -> [T S]`, answered in `accumulation_dtype` precision. `SCORES` lists them by
name; `LEARNED` says what each learns, one set a head: shape ("K" the width, "length" a position each) and start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.layer import l2_normalize
from attnlab.ops.mask import Places
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.tree import pytree
from attnlab.registry import Registry


def dot(q: Float[Array, "T K"], k: Float[Array, "S K"]) -> Float[Array, "T S"]:
    """Dot product, q·k (Luong, Pham, Manning 2015, section 3.1)."""
    return matmul(q, k.T)


def scaled_dot(q: Float[Array, "T K"], k: Float[Array, "S K"]) -> Float[Array, "T S"]:
    """Scaled dot product, q·k / √K: of variance one for independent unit components (Vaswani et al. 2017, eq. 1)."""
    return dot(*_scaled(q, k))


def _scaled(q, k):
    # The queries are scaled, not the scores: T·K products instead of T·S.
    return q * q.shape[-1] ** -0.5, k


def general(q: Float[Array, "T K"], k: Float[Array, "S K"], w: Float[Array, "K K"]) -> Float[Array, "T S"]:
    """A bilinear form, q W kᵀ (Luong, Pham, Manning 2015, section 3.1, "general")."""
    return dot(*_turned(q, k, w))


def _turned(q, k, w):
    q, k, w = _wide(q, k, w)
    return matmul(q, w), k


def additive(
    q: Float[Array, "T K"],
    k: Float[Array, "S K"],
    w_q: Float[Array, "K H"],
    w_k: Float[Array, "K H"],
    w: Float[Array, " H"],
) -> Float[Array, "T S"]:
    """A layer of one hidden vector a pair, tanh(q W_q + k W_k)·w (Bahdanau, Cho, Bengio 2015, appendix A.1.2)."""
    q, k, w_q, w_k, w = _wide(q, k, w_q, w_k, w)
    return hidden_scores(matmul(q, w_q), matmul(k, w_k), w)


def concat(
    q: Float[Array, "T K"], k: Float[Array, "S K"], w: Float[Array, "2 K H"], u: Float[Array, " H"]
) -> Float[Array, "T S"]:
    """A layer of the pair put together, tanh([q ; k] W)·u (Luong, Pham, Manning 2015, section 3.1, "concat").

    W is given as its two halves, w[0] for q and w[1] for k: [q ; k] W = q w[0] + k w[1], so no pair is put together.
    """
    return additive(q, k, w_q=w[0], w_k=w[1], w=u)


def gat(q: Float[Array, "T K"], k: Float[Array, "S K"], a: Float[Array, "2 K"]) -> Float[Array, "T S"]:
    """Graph attention's, LeakyReLU(a·[q ; k]) of slope 0.2 (Veličković et al. 2018, eq. 3)."""
    q, k, a = _wide(q, k, a)
    return jax.nn.leaky_relu((q @ a[0])[:, None] + (k @ a[1])[None, :], 0.2)


def location(q: Float[Array, "T K"], k: Float[Array, "S K"], w: Float[Array, "K L"]) -> Float[Array, "T S"]:
    """By the query and where the key stands, q·w_j for the key in row j, whatever it holds (Luong et al. 2015, eq. 8).

    Keys that stand elsewhere than in rows 0 … S−1 want the columns of w that are theirs: see `Scores`. Raises
    ValueError where w has fewer columns than there are keys.
    """
    S, length = k.shape[0], w.shape[1]
    if length < S:
        raise ValueError(f"location: {S} keys, but {length=} positions were learned")
    q, w = _wide(q, w)
    return matmul(q, w[:, :S])


def cosine(q: Float[Array, "T K"], k: Float[Array, "S K"], heat: Float[Array, ""]) -> Float[Array, "T S"]:
    """The cosine of the angle, exp(heat)·(q·k) / (‖q‖‖k‖), at most 100 (Liu et al. 2022, eq. 2: 1/τ = exp(heat)).

    The factor is learned, since a cosine alone lies in −1 … 1, where softmax over many keys is all but uniform; as an
    exponential it keeps its sign.
    """
    return dot(*_directions(q, k, heat))


def _directions(q, k, heat):
    q, k, heat = _wide(q, k, heat)
    return l2_normalize(q) * jnp.exp(jnp.minimum(heat, math.log(100.0))), l2_normalize(k)


SCORES: dict[str, Callable] = Registry("SCORES")
SCORES |= {score.__name__: score for score in (dot, scaled_dot, general, additive, concat, location, gat, cosine)}

# Scores as dot products of other queries and keys, which are made once.
PLAIN: dict[Callable, Callable] = {scaled_dot: _scaled, general: _turned, cosine: _directions}

# Scores that are products of a query and a key, in which rotary positions keep their meaning.
PRODUCTS = (dot, scaled_dot, cosine)


def _wide(*arrays: Array) -> tuple[Array, ...]:
    """Learned arrays and inputs in one precision, that of the first at least single."""
    return tuple(x.astype(accumulation_dtype(arrays[0].dtype)) for x in arrays)


# Of hidden numbers held at a time.
ROOM = 2**20


def hidden_scores(a: Float[Array, "T H"], b: Float[Array, "S H"], w: Float[Array, " H"]) -> Float[Array, "T S"]:
    """tanh(a_t + b_s)·w, some queries at a time: [T S H] is never held, forward or backward."""

    @jax.checkpoint
    def row(a):
        return jnp.tanh(a[None, :] + b) @ w

    return jax.lax.map(row, a, batch_size=min(a.shape[0], max(1, ROOM // max(1, b.size)))) if a.size else a @ b.T


def _normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Of variance one over the width that is summed; of `concat`, which sums two, over that of each."""
    return jax.random.normal(key, shape, jnp.float32) * shape[-2 if len(shape) > 1 else 0] ** -0.5


def _rows(key: Array, shape: tuple[int, ...]) -> Array:
    """As `_normal`, of vectors side by side: the width that is summed is the last."""
    return jax.random.normal(key, shape, jnp.float32) * shape[-1] ** -0.5


def _identity(key: Array, shape: tuple[int, ...]) -> Array:
    """Such that the score starts as the scaled dot product."""
    return jnp.eye(shape[0], dtype=jnp.float32) * shape[0] ** -0.5


def _ten(key: Array, shape: tuple[int, ...]) -> Array:
    return jnp.full(shape, math.log(10.0), jnp.float32)


LEARNED: dict[Callable, dict[str, tuple[tuple, Callable]]] = {
    general: {"w": (("K", "K"), _identity)},
    additive: {"w_q": (("K", "K"), _normal), "w_k": (("K", "K"), _normal), "w": (("K",), _normal)},
    concat: {"w": ((2, "K", "K"), _normal), "u": (("K",), _normal)},
    location: {"w": (("K", "length"), _normal)},
    gat: {"a": ((2, "K"), _rows)},
    cosine: {"heat": ((), _ten)},
}


def shapes(score: Callable, length: int) -> dict[str, tuple]:
    """What a score learns, for keys at positions below `length`: name -> shape, with "K" for the width."""
    return {name: _sized(shape, length) for name, (shape, _) in LEARNED.get(score, {}).items()}


def initial(score: Callable, length: int, key: Array, K: int) -> dict[str, Array]:
    """Where what a score learns begins, for queries and keys of width K."""
    table = LEARNED.get(score, {})
    keys = jax.random.split(key, max(1, len(table)))
    return {
        name: start(each, tuple(K if size == "K" else size for size in _sized(shape, length)))
        for each, (name, (shape, start)) in zip(keys, table.items(), strict=False)
    }


def is_length_bound(score: Callable) -> bool:
    """Whether a score learns something for every position, and so is bound to a length."""
    return any("length" in shape for shape, _ in LEARNED.get(score, {}).values())


def _sized(shape: tuple, length: int) -> tuple:
    return tuple(length if size == "length" else size for size in shape)


@pytree
@dataclass(frozen=True, eq=False)
class Scores:
    """A score with what it learned, and a bias: the scores of any pairs of a call, `(q, k, i, j) -> [T S]`.

    What is learned for every position is read at the keys' positions j; the answer is NaN for a position beyond it.
    """

    score: Callable = field(metadata={"static": True})
    learned: dict[str, Array]
    bias: Any = None

    def __call__(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"], i: Int[Places, " T"], j: Int[Places, " S"]
    ) -> Float[Array, "T S"]:
        """The scores of queries at i and keys at j."""
        scores = self._placed(q, k, j) if is_length_bound(self.score) else self.score(q, k, **self.learned)
        return scores if self.bias is None else scores + self.bias(q, i, j).astype(scores.dtype)

    @property
    def product(self) -> bool:
        """Whether they are the dot product, and nothing else."""
        return self.score is dot and self.bias is None

    def plain(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"]
    ) -> tuple[Float[Array, "T H"], Float[Array, "S H"], Scores]:
        """Queries and keys of which the same scores are the dot product, where there are such: T+S rows, not T·S."""
        if self.bias is not None or self.score not in PLAIN:
            return q, k, self
        return *PLAIN[self.score](q, k, **self.learned), Scores(dot, {})

    def _placed(self, q, k, j):
        table, columns, inside = LEARNED[self.score], dict(self.learned), jnp.ones(j.shape, bool)
        for name in [name for name, (shape, _) in table.items() if shape[-1] == "length"]:
            inside = (j >= 0) & (j < columns[name].shape[-1])
            columns[name] = columns[name][..., jnp.where(inside, j, 0)]
        # Chosen after the product: as NaN in an array, it would reach the gradients of keys that no query may see.
        return jnp.where(inside[None, :], self.score(q, k, **columns), jnp.nan)
