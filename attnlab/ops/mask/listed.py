"""A mask given as a list of pairs. Sparse forms follow the list and never build a table of all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from attnlab.ops.lookup import lookup
from attnlab.ops.mask.base import ArrayOrNumpy, Mask
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True, eq=False)
class EdgeList(Mask):
    """A graph given by its edges: query[e] sees key[e].

    A negative entry is padding, not an edge. Each edge must be listed once: a sum along the list would count a repeated
    edge twice, while a mask has no multiplicity.

    Raises:
      ValueError: if the arrays are known at trace time and an edge is listed twice. The message names the edge.
    """

    query: Int[ArrayOrNumpy, " E"]
    """Query position of each edge [E]."""
    key: Int[ArrayOrNumpy, " E"]
    """Key position of each edge [E]."""
    indexed = True

    def __post_init__(self):
        if isinstance(self.query, np.ndarray) and isinstance(self.key, np.ndarray):
            edges = np.stack([self.query, self.key], axis=1)[(self.query >= 0) & (self.key >= 0)]
            distinct, counts = np.unique(edges, axis=0, return_counts=True)
            if (counts > 1).any():
                raise ValueError(f"EdgeList: the edge {tuple(distinct[counts > 1][0].tolist())} is given twice")

    def __call__(self, i, j):
        """Whether (i, j) is in the list."""
        i, j = (jnp.asarray(at, jnp.int32) for at in (i, j))
        t, s = _first(i, self.query), _first(j, self.key)
        pairs = jnp.zeros((i.shape[0], j.shape[0]), bool).at[t, s].set(True, mode="drop")
        return lookup(lookup(pairs, _first(i, i), False).T, _first(j, j), False).T

    def reachable(self, i, j):
        """As `Mask.reachable`, computed edge by edge in O(E + T + S)."""
        i, j = (jnp.asarray(at, jnp.int32) for at in (i, j))
        t, s = _first(i, self.query), _first(j, self.key)
        present = (t < i.shape[0]) & (s < j.shape[0])
        rows = jnp.zeros(i.shape, bool).at[t].max(present, mode="drop")
        columns = jnp.zeros(j.shape, bool).at[s].max(present, mode="drop")
        return lookup(rows, _first(i, i), False), lookup(columns, _first(j, j), False)

    def rows(self, i: Int[np.ndarray, " T"], j: Int[np.ndarray, " S"]) -> tuple[ArrayOrNumpy, ArrayOrNumpy] | None:
        """Returns which rows of a call each edge joins.

        Args:
          i: query positions [T], known at trace time (numpy).
          j: key positions [S], known at trace time (numpy).

        Returns:
          Rows of queries [E] and rows of keys [E]; T and S for an edge whose end is not in the call. None if a position
          occurs twice or is negative.
        """
        if any(len(np.unique(at)) < len(at) or at.min(initial=0) < 0 for at in (i, j)):
            return None
        t, s = _row(i, self.query), _row(j, self.key)
        present = (t < len(i)) & (s < len(j))
        xp = np if isinstance(present, np.ndarray) else jnp
        return xp.where(present, t, np.int32(len(i))), xp.where(present, s, np.int32(len(j)))


def _first(places: Int[Array, " T"], targets: Int[ArrayOrNumpy, " E"]) -> Int[Array, " E"]:
    """Returns the first row at each of the given positions; T if there is none, or if the position is negative."""
    order, targets = jnp.argsort(places), jnp.asarray(targets, jnp.int32)
    at = jnp.searchsorted(places[order], targets).astype(jnp.int32)
    row = lookup(order.astype(jnp.int32), at, 0)
    found = (lookup(places, row, -1) == targets) & (at < places.shape[0]) & (targets >= 0)
    return jnp.where(found, row, places.shape[0])


def _row(places: Int[np.ndarray, " T"], targets: Int[ArrayOrNumpy, " E"]) -> Int[ArrayOrNumpy, " E"]:
    """As `_first`, for known and distinct positions, by a lookup table."""
    T = len(places)
    table = np.full(int(places.max(initial=-1)) + 1, T, np.int32)
    table[places] = np.arange(T, dtype=np.int32)
    if not isinstance(targets, np.ndarray):
        return lookup(table, targets.astype(jnp.int32), np.int32(T)) if T else jnp.full(targets.shape, T, jnp.int32)
    inside = (targets >= 0) & (targets < len(table))
    found = np.full(targets.shape, T, np.int32)
    found[inside] = table[targets[inside]]
    return found
