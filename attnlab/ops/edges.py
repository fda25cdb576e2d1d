"""Attention along the edges of a graph. Time and memory are linear in the edges, and no table of all pairs is made.

An edge e joins row t_e of the queries with row s_e of the keys. Its score is computed by the function that also scores
all pairs. A softmax over the edges of each query replaces the one over a row (Veličković et al. 2018, eq. 2-4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from attnlab.ops.learned_score import Scores
from attnlab.ops.mask import ArrayOrNumpy, EdgeList
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.score import gat
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """The rows that the edges of a graph join. An edge with t = T or s = S is padding."""

    t: Int[ArrayOrNumpy, " E"]
    """Row of each edge's query [E]."""
    s: Int[ArrayOrNumpy, " E"]
    """Row of each edge's key [E]."""
    T: int = static()
    """Number of queries."""
    S: int = static()
    """Number of keys."""

    @property
    def valid(self) -> Bool[ArrayOrNumpy, " E"]:
        """Which entries are edges, not padding [E]."""
        return (self.t < self.T) & (self.s < self.S)

    def reachable(self) -> tuple[Bool[Array, " T"], Bool[Array, " S"]]:
        """Returns which queries see any key [T], and which keys are seen by any query [S]."""
        marked = lambda n, at: jnp.zeros(n, bool).at[at].max(self.valid, mode="drop")
        return marked(self.T, self.t), marked(self.S, self.s)

    def restricted(self, chosen: Bool[ArrayOrNumpy, " E"]) -> EdgeIndex:
        """Returns the index with the edges that are not chosen turned into padding."""
        return replace(self, t=jnp.where(chosen, self.t, self.T), s=jnp.where(chosen, self.s, self.S))


def from_edge_list(mask: EdgeList, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]) -> EdgeIndex | None:
    """Returns the rows of a call that the edges of a mask join.

    Args:
      mask: the list of edges, in positions.
      i: positions of the queries [T].
      j: positions of the keys [S].

    Returns:
      The index, or None if positions are traced, negative, or not distinct.
    """
    if not (isinstance(i, np.ndarray) and isinstance(j, np.ndarray)):
        return None
    found = mask.rows(i, j)
    return None if found is None else EdgeIndex(*found, len(i), len(j))


def gather(x: Shaped[Array, "N ..."], rows: Int[ArrayOrNumpy, " E"]) -> Shaped[Array, "E ..."]:
    """Returns the rows of x at the given indices; zero for padding.

    Padding takes nothing from x and gives it no gradient.
    """
    return x.at[rows].get(mode="fill", fill_value=0)


def sum_per_query(x: Shaped[Array, "E ..."], ends: EdgeIndex) -> Shaped[Array, "T ..."]:
    """Returns the sum over the edges of each query; zero for a query without edges."""
    return jnp.zeros((ends.T, *x.shape[1:]), x.dtype).at[ends.t].add(x, mode="drop")


def max_per_query(x: Float[Array, " E"], ends: EdgeIndex) -> Float[Array, " T"]:
    """Returns the maximum over the edges of each query, without a gradient; −∞ for a query without edges."""
    return jnp.full(ends.T, -jnp.inf, x.dtype).at[ends.t].max(jax.lax.stop_gradient(x), mode="drop")


def edge_scores(
    function: Callable[..., Shaped[ArrayOrNumpy, "T S"]],
    q: Float[Array, "T K"],
    k: Float[Array, "S K"],
    ends: EdgeIndex,
    i: Int[ArrayOrNumpy, " T"],
    j: Int[ArrayOrNumpy, " S"],
) -> Shaped[Array, " E"]:
    """Evaluates a score or mask function at the edges only, as if each edge were a call of one query and one key.

    Args:
      function: `(q, k, i, j) -> [T S]`.
      q: queries [T K].
      k: keys [S K].
      ends: the edges.
      i: positions of the queries [T].
      j: positions of the keys [S].

    Returns:
      One value per edge [E].
    """
    one = lambda *pair: function(*(x[None] for x in pair))[0, 0]
    i, j = gather(jnp.asarray(i), ends.t), gather(jnp.asarray(j), ends.s)
    return jax.vmap(one)(gather(q, ends.t), gather(k, ends.s), i, j)


def split_scores(
    scores: Scores, q: Float[Array, "T K"], k: Float[Array, "S K"]
) -> tuple[Float[Array, "T M"], Float[Array, "S M"], Scores]:
    """Transforms queries and keys so that the same scores take less work per edge.

    Parts that depend on one node only are computed once per node.

    Args:
      scores: the score function.
      q: queries [T K].
      k: keys [S K].

    Returns:
      (queries [T M], keys [S M], scores).
    """
    if scores.score is gat and scores.bias is None:
        a = scores.learned["a"].astype(accumulation_dtype(q.dtype))
        one = lambda x, a: (x.astype(a.dtype) @ a)[:, None]
        return one(q, a[0]), one(k, a[1]), Scores(_joined, {}, softcap=scores.softcap)
    return scores.plain(q, k)


def _joined(q, k):
    """The score `gat` from its two halves q [T 1] and k [S 1]."""
    return jax.nn.leaky_relu(q + k.T, 0.2)


@jax.custom_jvp
def softmax(scores: Float[Array, " E"], ends: EdgeIndex) -> Float[Array, " E"]:
    """Returns exp(s_e) / Σ exp over the edges of the same query.

    It is `attnlab.ops.softmax.masked_softmax` along edges.

    Args:
      scores: scores of the edges [E].
      ends: the edges.

    Returns:
      Attention weights [E], zero for padding, in float32 at least.
    """
    scores = jnp.where(ends.valid, scores.astype(accumulation_dtype(scores.dtype)), -jnp.inf)
    top = max_per_query(scores, ends)
    share = jnp.exp(scores - gather(jnp.where(jnp.isneginf(top), jnp.zeros_like(top), top), ends.t))
    # The largest score of a query contributes 1, so the total of a query with edges is at least 1.
    return share * gather(1 / jnp.maximum(sum_per_query(share, ends), 1), ends.t)


@softmax.defjvp
def _(primals: tuple[Array, EdgeIndex], tangents: tuple[Array, EdgeIndex]):
    """The tangent dw = w (ds − Σ w ds), summed over the edges of the same query. Tangents of padding are dropped."""
    scores, ends = primals
    weights = softmax(scores, ends)
    change = jnp.where(ends.valid, tangents[0].astype(weights.dtype), jnp.zeros_like(weights))
    return weights, weights * (change - gather(sum_per_query(weights * change, ends), ends.t))


def sum_values(
    weights: Float[Array, " E *heads"], v: Float[Array, "S *heads V"], ends: EdgeIndex
) -> Float[Array, "T *heads V"]:
    """Returns y_t = Σ w_e v_{s_e} over the edges of query t, accumulated in `accumulation_dtype` precision.

    A bag of words is an example: texts are queries, words are keys, and the weights are the counts. Head axes may
    follow the edge axis. The values of all heads are then gathered and summed as one row, which is faster than head by
    head.

    Args:
      weights: weights of the edges [E *heads].
      v: values [S *heads V].
      ends: the edges.

    Returns:
      Sums [T *heads V], in the dtype of v.
    """
    dtype = accumulation_dtype(v.dtype)
    return sum_per_query(weights.astype(dtype)[..., None] * gather(v, ends.s).astype(dtype), ends).astype(v.dtype)


def symmetric_normalization(ends: EdgeIndex, dtype=None) -> Float[Array, " E"]:
    """Returns 1 / √(d_t d_s), where d counts the edges at either end (Kipf and Welling 2017, eq. 2).

    These are the weights D^−½ A D^−½ of a graph convolution.

    Args:
      ends: the edges.
      dtype: dtype of the result. Defaults to the default float.

    Returns:
      Weights [E], zero for padding.
    """
    ones = jnp.where(ends.valid, 1, 0).astype(jnp.result_type(float) if dtype is None else dtype)
    at_s = jnp.zeros(ends.S, ones.dtype).at[ends.s].add(ones, mode="drop")
    degrees = gather(sum_per_query(ones, ends), ends.t) * gather(at_s, ends.s)
    return jnp.where(ends.valid, jax.lax.rsqrt(jnp.maximum(degrees, 1)), 0)
