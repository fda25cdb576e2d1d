"""A position of images by which a head looks a learned way off: with it attention contains convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.ops.counts import check_counts
from attnlab.ops.position import grid
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.tree import pytree, static


@dataclass(frozen=True)
class Quadratic2D(Position):
    """−α_h ‖δ − Δ_h‖² added to the scores of head h, δ from query to key in a grid (Cordonnier et al. 2020).

    The grid has so many `columns`. The centre Δ_h [2] (rows, columns) and the sharpness α_h = softplus(s_h) are
    learned, and shared by the layers (equation 9 of the paper, up to a constant of each row, which softmax does not
    see). As α grows a head copies the one key at Δ_h, and K² heads with a centre each are a K × K convolution (theorem
    1). Centres start at random with a spread of `spread` pixels.
    """

    columns: int = 32
    spread: float = 1.0
    biasing = True
    data_driven = True

    def __post_init__(self):
        check_counts(columns=self.columns)
        if not self.spread >= 0:
            raise ValueError(f"spread={self.spread} must be 0 or more")

    def create(self, key, width, heads, layers=1, causal=False):
        """Centres and sharpness."""
        return GaussianCentres(key, self, heads)


class GaussianCentres(PositionEncoding, nnx.Module):
    """The centres [H, 2] and the sharpness, before softplus, [H] of `Quadratic2D`."""

    biasing = True

    def __init__(self, key: PRNGKeyArray, config: Quadratic2D, heads: int):
        self.config = config
        self.centres = NoDecay(jax.random.normal(fold_key(key, "centres"), (heads, 2)) * config.spread)
        self.sharpness = NoDecay(jnp.zeros(heads))

    def bias(self, heads):
        """Those of all heads."""
        return GaussianBias(self.centres[...], jax.nn.softplus(self.sharpness[...]), self.config.columns)


@pytree
@dataclass(frozen=True)
class GaussianBias:
    """The bias of `Quadratic2D`: highest where a key stands at the centre."""

    centre: Any
    alpha: Any
    columns: int = static()

    def __call__(self, q, i, j):
        """−α ‖δ − Δ‖²: [T S]."""
        dtype = accumulation_dtype(q.dtype)
        squares = 0.0
        for at, own, centre in zip(grid(j, self.columns), grid(i, self.columns), self.centre, strict=True):
            away = (at[None, :] - own[:, None]).astype(dtype) - centre.astype(dtype)
            squares = squares + away * away
        return -self.alpha.astype(dtype) * squares
