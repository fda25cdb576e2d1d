"""Attention along the edges of a graph: time and memory follow the edges, and no table of all pairs is made.

An edge e joins row t_e of the queries with row s_e of the keys. Its score is that of the very function that scores all
pairs; a softmax over the edges of each query takes the place of one over its row (Veličković et al. 2018, eq. 2-4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from attnlab.ops.mask import EdgeList, Places
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.score import Scores, gat
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """Which rows the edges of a graph join: `t` of T queries, `s` of S keys; T and S for padding, which is no edge."""

    t: Int[Places, " E"]
    s: Int[Places, " E"]
    T: int = static()
    S: int = static()

    @property
    def valid(self) -> Bool[Places, " E"]:
        """Which are edges at all."""
        return (self.t < self.T) & (self.s < self.S)

    def reachable(self) -> tuple[Bool[Array, " T"], Bool[Array, " S"]]:
        """Which queries see any key, and which keys any query sees."""
        marked = lambda n, at: jnp.zeros(n, bool).at[at].max(self.valid, mode="drop")
        return marked(self.T, self.t), marked(self.S, self.s)

    def restricted(self, chosen: Bool[Places, " E"]) -> EdgeIndex:
        """The same, the edges not chosen as padding."""
        return replace(self, t=jnp.where(chosen, self.t, self.T), s=jnp.where(chosen, self.s, self.S))


def from_edge_list(mask: EdgeList, i: Int[Places, " T"], j: Int[Places, " S"]) -> EdgeIndex | None:
    """Which rows of a call the edges of a mask join; None where positions are not known, or two rows share one."""
    if not (isinstance(i, np.ndarray) and isinstance(j, np.ndarray)):
        return None
    found = mask.rows(i, j)
    return None if found is None else EdgeIndex(*found, len(i), len(j))


def gather(x: Shaped[Array, "N ..."], rows: Int[Places, " E"]) -> Shaped[Array, "E ..."]:
    """The rows of x at the ends of the edges; zero for padding, which takes nothing from x and gives it no gradient."""
    return x.at[rows].get(mode="fill", fill_value=0)


def sum_per_query(x: Shaped[Array, "E ..."], ends: EdgeIndex) -> Shaped[Array, "T ..."]:
    """The sum over the edges of each query, zero where it has none."""
    return jnp.zeros((ends.T, *x.shape[1:]), x.dtype).at[ends.t].add(x, mode="drop")


def max_per_query(x: Float[Array, " E"], ends: EdgeIndex) -> Float[Array, " T"]:
    """The largest over the edges of each query, −∞ where it has none; a constant to a gradient."""
    return jnp.full(ends.T, -jnp.inf, x.dtype).at[ends.t].max(jax.lax.stop_gradient(x), mode="drop")


def edge_scores(
    function: Callable[..., Shaped[Places, "T S"]],
    q: Float[Array, "T K"],
    k: Float[Array, "S K"],
    ends: EdgeIndex,
    i: Int[Places, " T"],
    j: Int[Places, " S"],
) -> Shaped[Array, " E"]:
    """`function(q, k, i, j) -> [T S]`, at the edges alone: as if each edge were a call of one query and one key."""
    one = lambda *pair: function(*(x[None] for x in pair))[0, 0]
    i, j = gather(jnp.asarray(i), ends.t), gather(jnp.asarray(j), ends.s)
    return jax.vmap(one)(gather(q, ends.t), gather(k, ends.s), i, j)


def split_scores(
    scores: Scores, q: Float[Array, "T K"], k: Float[Array, "S K"]
) -> tuple[Float[Array, "T M"], Float[Array, "S M"], Scores]:
    """Queries and keys from which the same scores are had for less: what is of a node alone is computed once a node."""
    if scores.score is gat and scores.bias is None:
        a = scores.learned["a"].astype(accumulation_dtype(q.dtype))
        one = lambda x, a: (x.astype(a.dtype) @ a)[:, None]
        return one(q, a[0]), one(k, a[1]), Scores(_joined, {})
    return scores.plain(q, k)


def _joined(q, k):
    """The score `gat` from its two halves."""
    return jax.nn.leaky_relu(q + k.T, 0.2)


@jax.custom_jvp
def softmax(scores: Float[Array, " E"], ends: EdgeIndex) -> Float[Array, " E"]:
    """exp(s_e) / Σ exp over the edges of the same query: `attnlab.ops.softmax.masked_softmax`, along edges."""
    scores = jnp.where(ends.valid, scores.astype(accumulation_dtype(scores.dtype)), -jnp.inf)
    top = max_per_query(scores, ends)
    share = jnp.exp(scores - gather(jnp.where(jnp.isneginf(top), jnp.zeros_like(top), top), ends.t))
    # The peak's own share is 1, so that no total of a query with edges is below that.
    return share * gather(1 / jnp.maximum(sum_per_query(share, ends), 1), ends.t)


@softmax.defjvp
def _(primals: Any, tangents: Any):
    """dw = w (ds − Σ w ds), the sum over the edges of the same query; no tangent of padding gets in."""
    scores, ends = primals
    weights = softmax(scores, ends)
    change = jnp.where(ends.valid, tangents[0].astype(weights.dtype), jnp.zeros_like(weights))
    return weights, weights * (change - gather(sum_per_query(weights * change, ends), ends.t))


def sum_values(
    weights: Float[Array, " E *heads"], v: Float[Array, "S *heads V"], ends: EdgeIndex
) -> Float[Array, "T *heads V"]:
    """y_t = Σ w_e v_{s_e} over the edges of query t, in the dtype of v, summed in `accumulation_dtype` precision.

    Of a bag of words it is the sum of their vectors: texts are the queries, words the keys, and weights how often.
    Heads may stand behind the edges: their values are then gathered and summed as one row, which is quicker than
    head by head.
    """
    dtype = accumulation_dtype(v.dtype)
    return sum_per_query(weights.astype(dtype)[..., None] * gather(v, ends.s).astype(dtype), ends).astype(v.dtype)


def symmetric_normalization(ends: EdgeIndex, dtype=None) -> Float[Array, " E"]:
    """1 / √(d_t d_s), d the number of edges at either end: the weights D^−½ A D^−½ (Kipf and Welling 2017, eq. 2)."""
    ones = jnp.where(ends.valid, 1, 0).astype(jnp.result_type(float) if dtype is None else dtype)
    at_s = jnp.zeros(ends.S, ones.dtype).at[ends.s].add(ones, mode="drop")
    degrees = gather(sum_per_query(ones, ends), ends.t) * gather(at_s, ends.s)
    return jnp.where(ends.valid, jax.lax.rsqrt(jnp.maximum(degrees, 1)), 0)
