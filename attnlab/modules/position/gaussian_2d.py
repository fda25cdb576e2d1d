"""A position encoding of images in which each head attends at a learned offset, as in a convolution."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.ops.counts import check_counts
from attnlab.ops.position import grid
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.tree import pytree, static


@dataclass(frozen=True)
class Quadratic2D(Position):
    """A bias −α_h ‖δ − Δ_h‖² on head h for the grid offset δ from query to key (Cordonnier et al. 2020).

    The centre Δ_h [2] (rows, columns) and the sharpness α_h = softplus(s_h) are learned, and shared by the layers. This
    is equation 9 of the paper up to a constant of each row, which softmax ignores.

    As α grows, a head copies the single key at Δ_h. K² heads with one centre each form a K × K convolution (theorem 1).

    In the authors' code, each layer has centres of its own, initially of deviation 2, and α starts at ½ (here at ln 2).
    Content does not enter its scores at all.
    """

    columns: int = 32
    """Number of columns of the grid."""
    spread: float = 1.0
    """Standard deviation of the initial centres, which are normal, in pixels."""
    has_bias = True
    data_driven = True

    def __post_init__(self):
        check_counts(columns=self.columns)
        if not self.spread >= 0:
            raise ValueError(f"spread={self.spread} must be 0 or more")

    def create(self, key, width, heads, layers=1, causal=False):
        """Create the centres and the sharpness."""
        return GaussianCentres(key, self, heads)


class GaussianCentres(PositionEncoding, nnx.Module):
    """The centres [H, 2] of `Quadratic2D`, and its sharpness before softplus [H]."""

    has_bias = True

    def __init__(self, key: PRNGKeyArray, config: Quadratic2D, heads: int):
        self.config = config
        self.centres = NoDecay(jax.random.normal(fold_key(key, "centres"), (heads, 2)) * config.spread)
        self.sharpness = NoDecay(jnp.zeros(heads))

    def bias(self, heads):
        """Return the biases of all heads."""
        return GaussianBias(self.centres[...], jax.nn.softplus(self.sharpness[...]), self.config.columns)


@pytree
@dataclass(frozen=True)
class GaussianBias:
    """The bias of `Quadratic2D`, highest for a key at the centre."""

    centre: Float[Array, "..."]
    """The centre Δ (rows, columns); [H, 2] for all heads, [2] for one."""
    alpha: Float[Array, "..."]
    """The sharpness α; [H] for all heads, a scalar for one."""
    columns: int = static()
    """Number of columns of the grid."""

    def __call__(self, q, i, j):
        """Return −α ‖δ − Δ‖², [T S]."""
        dtype = accumulation_dtype(q.dtype)
        squares = 0.0
        for at, own, centre in zip(grid(j, self.columns), grid(i, self.columns), self.centre, strict=True):
            away = (at[None, :] - own[:, None]).astype(dtype) - centre.astype(dtype)
            squares = squares + away * away
        return -self.alpha.astype(dtype) * squares
