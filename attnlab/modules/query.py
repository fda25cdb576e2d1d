"""A decoder layer for a set of queries that are decoded in parallel, and the queries' position vectors."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.modules.block import FeedForwardLayer
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.parameter import NoDecay
from attnlab.ops.layer import split_keys
from attnlab.ops.position import normalised, sinusoidal


class QueryLayer(FeedForwardLayer):
    """Self-attention of the queries, cross-attention to a context, and feed-forward (Carion et al. 2020, appendix A.3).

    A set has no order, so each query has a vector that distinguishes it. This vector is added to the inputs of queries
    and keys, but not of values. Keys and values of the context have separate inputs in the same way.

    Args:
        key: Key for the initial parameters.
        sizes: The configuration that all layers share.
        query_attention: Mechanism of the self-attention.
        cross: Mechanism of the cross-attention.
    """

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, query_attention: Mechanism, cross: Mechanism):
        self.attention = sizes.cross_attention(fold_key(key, "attention"), query_attention)
        self.cross = sizes.cross_attention(fold_key(key, "cross"), cross)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention, self.around_cross = sizes.residual(), sizes.residual()

    def __call__(
        self,
        x: Float[Array, "Q D"],
        place: Float[Array, "Q D"],
        context: Float[Array, "S D"],
        where: Float[Array, "S D"],
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "Q D"], dict[str, Array | None]]:
        """Compute the layer for one example.

        Args:
            x: Vectors of the queries.
            place: The vector that distinguishes each query.
            context: Inputs of the values of the context.
            where: Inputs of the keys of the context: the context with positions added.
            key: Key for dropout. None means no dropout.

        Returns:
            The new x, and the attention maps {"query_attention": [H Q Q], "cross": [H Q S]}, each None without an
            observer.
        """
        keys = split_keys(key, 4)
        queries = self.around_attention.before(x)
        own = self.attention.keys_values(queries + place, queries)
        y, own_map = self.attention.cross(queries + place, own, key=keys[0])
        x = self.around_attention.after(x, y, keys[0])
        known = self.cross.keys_values(where, context)
        i = np.arange(len(x), dtype=np.int32)
        y, cross = self.cross.cross(self.around_cross.before(x) + place, known, i=i, key=keys[1])
        x = self.around_cross.after(x, y, keys[1])
        return self.apply_feedforward(x, keys[2:]), {"query_attention": own_map, "cross": cross}


class LearnedQueries(nnx.Module):
    """Queries as learned vectors without a point in the image (Carion et al. 2020).

    Args:
        key: Key for the initial vectors.
        count: Number Q of queries.
        width: Size D of the vectors.
    """

    def __init__(self, key: PRNGKeyArray, count: int, width: int):
        self.place = NoDecay(jax.random.normal(key, (count, width)))

    def __call__(self, rows: float, columns: float) -> tuple[Float[Array, "Q D"], Float[Array, "Q 2"]]:
        """Return the vector of each query, and zeros instead of points. `rows` and `columns` are unused."""
        place = self.place[...]
        return place, jnp.zeros((place.shape[0], 2), place.dtype)


class AnchoredQueries(nnx.Module):
    """Queries as learned points of the image, encoded by sines and cosines (Wang et al. 2022; Liu et al. 2022).

    The initial points are uniformly distributed over the image, except for its border.

    Args:
        key: Key for the initial parameters.
        count: Number Q of queries.
        width: Size D of the vectors; must be divisible by 4.
        middle: Distance of grid position 0 from the border of the image, in grid positions.
        normalised: Whether to encode points like `Sinusoidal2D(normalised=True)`.
    """

    def __init__(self, key: PRNGKeyArray, count: int, width: int, middle: float = 0.5, normalised: bool = False):
        start = jax.random.uniform(fold_key(key, "points"), (count, 2), minval=0.05, maxval=0.95)
        self.points = NoDecay(jnp.log(start / (1 - start)))
        self.dense = Dense(fold_key(key, "dense"), width, width)
        self.width, self.middle, self.normalised = width, middle, normalised

    def __call__(self, rows: float, columns: float) -> tuple[Float[Array, "Q D"], Float[Array, "Q 2"]]:
        """Return the vector of each query and its point, which the centre of its box is relative to.

        Args:
            rows: Height of the image in grid positions. It has a fraction if the image ends within the last row.
            columns: Width of the image in grid positions, likewise.

        Returns:
            Vectors [Q D], and points [Q 2] as (x, y). Their sigmoids are fractions of the image.
        """
        points = self.points[...]
        x, y = (jax.nn.sigmoid(points[:, n]) * side - self.middle for n, side in enumerate((columns, rows)))
        if self.normalised:
            # The last row and column count as whole, also if the image ends within them.
            x, y = (normalised(at, math.ceil(side)) for at, side in ((x, columns), (y, rows)))
        halves = [sinusoidal(at, self.width // 2, at.dtype) for at in (y, x)]
        return self.dense(jnp.concatenate(halves, axis=1)), points
