"""The decoder that asks a memory with a set of queries, all at once: its layer, and what tells queries apart."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.modules.block import LayerConfig, Residual, apply_feedforward
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.ops.position import normalised, sinusoidal


class QueryLayer(nnx.Module):
    """Attention among the queries, to all of them; to a memory; then feed-forward (Carion et al. 2020, appendix A.3).

    A set has no order: what tells queries apart is a vector of each, `place`, added wherever one asks or is asked, and
    not to what is answered. A memory is asked by `where`, vectors that know where they stand.
    """

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, among: Mechanism, cross: Mechanism):
        self.attention = sizes.attention(fold_key(key, "attention"), among)
        self.cross = sizes.attention(fold_key(key, "cross"), cross)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention, self.around_cross = Residual(sizes), Residual(sizes)

    def __call__(
        self,
        x: Float[Array, "Q D"],
        place: Float[Array, "Q D"],
        memory: Float[Array, "S D"],
        where: Float[Array, "S D"],
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "Q D"], dict[str, Any]]:
        """One example. Answers (x, looks {"among": [H Q Q], "cross": [H Q S]})."""
        keys: Any = [None] * 4 if key is None else jax.random.split(key, 4)
        queries = self.around_attention.before(x)
        own = self.attention.keys_values(queries + place, queries)
        y, among = self.attention.cross(queries + place, own)
        x = self.around_attention.after(x, y, keys[0])
        known = self.cross.keys_values(where, memory)
        y, cross = self.cross.cross(self.around_cross.before(x) + place, known)
        x = self.around_cross.after(x, y, keys[1])
        return apply_feedforward(self, x, keys[2:]), {"among": among, "cross": cross}


class LearnedQueries(nnx.Module):
    """Queries that are learned vectors, and stand nowhere (Carion et al. 2020)."""

    def __init__(self, key: PRNGKeyArray, count: int, width: int):
        self.place = NoDecay(jax.random.normal(key, (count, width)))

    def __call__(self, rows: float, columns: float) -> tuple[Float[Array, "Q D"], Float[Array, "Q 2"]]:
        """(the vector of each, where its box begins: nowhere, which is 0)."""
        place = self.place[...]
        return place, jnp.zeros((place.shape[0], 2), place.dtype)


class AnchoredQueries(nnx.Module):
    """Queries that are learned points of the image, told by sines and cosines (Wang et al. 2022; Liu et al. 2022).

    Points start anywhere, each place as likely. `width` is divisible by 4. Place 0 of a grid is seen `middle` of a
    place from the border. `normalised`: places are told as by `Sinusoidal2D(normalised=True)`.
    """

    def __init__(self, key: PRNGKeyArray, count: int, width: int, middle: float = 0.5, normalised: bool = False):
        start = jax.random.uniform(fold_key(key, "points"), (count, 2), minval=0.05, maxval=0.95)
        self.points = NoDecay(jnp.log(start / (1 - start)))
        self.dense = Dense(fold_key(key, "dense"), width, width)
        self.width, self.middle, self.normalised = width, middle, normalised

    def __call__(self, rows: float, columns: float) -> tuple[Float[Array, "Q D"], Float[Array, "Q 2"]]:
        """(the vector of each, the point from which the centre of its box is reckoned), in a grid of rows and columns.

        A point is (x, y), whose sigmoids are shares of the image; of the last row and column a part may be beyond it.
        """
        points = self.points[...]
        x, y = (jax.nn.sigmoid(points[:, n]) * side - self.middle for n, side in enumerate((columns, rows)))
        if self.normalised:
            # Of a grid whose last row and column may look beyond the image, all are counted.
            x, y = (normalised(at, math.ceil(side)) for at, side in ((x, columns), (y, rows)))
        halves = [sinusoidal(at, self.width // 2, at.dtype) for at in (y, x)]
        return self.dense(jnp.concatenate(halves, axis=1)), points
