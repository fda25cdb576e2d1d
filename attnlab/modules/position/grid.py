"""Positions of an image's patches, read row by row: half of each vector tells the row, half the column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.absolute import LEVEL
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.modules.position.rotary import even_heads
from attnlab.ops.counts import check_counts
from attnlab.ops.lookup import lookup
from attnlab.ops.position import grid, rotary_2d, sinusoidal_2d


@dataclass(frozen=True)
class Sinusoidal2D(Position):
    """Sines and cosines of row and column in a grid of `columns` and `rows`, added to the input (Carion et al. 2020).

    The first half of a vector tells the row, the second the column. As in DETR's code, both are counted from 1, divided
    by how many there are, and multiplied by 2π, so that images of every size span the same; its mask of padding has no
    counterpart here. `normalised` False counts both from 0, in places of the grid, and knows no number of rows. The
    sines of a plain ViT (Beyer et al. 2022) have other frequencies, and are not here.
    """

    columns: int = 32
    rows: int = 32
    normalised: bool = True
    missing_values: ClassVar[dict] = {"normalised": False}

    def __post_init__(self):
        check_counts(columns=self.columns, rows=self.rows)

    def check(self, width, heads):
        """Each half of the width must be even."""
        if width % 4:
            raise ValueError(f"model.width={width} must be divisible by 4 for sinusoidal-2d positions")

    def add(self, x, i, table=None):
        """The input x + p_i."""
        rows = self.rows if self.normalised else None
        return x + sinusoidal_2d(i, x.shape[1], self.columns, x.dtype, rows)


@dataclass(frozen=True)
class Learned2D(Position):
    """A learned vector for each of `rows` and of `columns`, side by side, added (Dosovitskiy et al. 2021, D.4).

    A longer sequence than rows · columns raises ValueError; in a traced loop, a position beyond the end answers NaN.
    """

    columns: int = 32
    rows: int = 32
    inductive = False
    data_driven = True
    parameter_efficient = False

    def __post_init__(self):
        check_counts(columns=self.columns, rows=self.rows)

    def check(self, width, heads):
        """The width must have halves."""
        if width % 2:
            raise ValueError(f"model.width={width} must be even for learned-2d positions")

    def max_length(self, dtype):
        """The whole grid."""
        return self.rows * self.columns

    def create(self, key, width, heads, layers=1, causal=False):
        """The two tables."""
        return LearnedGrid(key, self, width)


class LearnedGrid(PositionEncoding, nnx.Module):
    """The tables of `Learned2D`: [rows, D/2] and [columns, D/2]."""

    def __init__(self, key: PRNGKeyArray, config: Learned2D, width: int):
        self.config = config
        draw = lambda name, count: jax.random.normal(fold_key(key, name), (count, width // 2)) * LEVEL
        self.rows, self.columns = NoDecay(draw("rows", config.rows)), NoDecay(draw("columns", config.columns))

    def table(self, length, dtype):
        """Nothing is worked out, but the length is checked."""
        return self.config.check_length(length, dtype)

    def add(self, x, i, table=None):
        """The input x + p_i."""
        self.config.check_length(x.shape[0], x.dtype)
        row, column = grid(i, self.config.columns)
        halves = lookup(self.rows[...], row, jnp.nan), lookup(self.columns[...], column, jnp.nan)
        return x + jnp.concatenate(halves, axis=1).astype(x.dtype)


@dataclass(frozen=True)
class Rotary2D(Position):
    """Rotary positions in a grid of `columns`: half of each head turned by the row, half by the column, interleaved."""

    columns: int = 32
    base: float = 10000.0
    turning = True
    rotates = 4

    def __post_init__(self):
        check_counts(columns=self.columns)
        if not self.base > 0:
            raise ValueError(f"base={self.base} must be above 0")

    def check(self, width, heads):
        """Each half of a head must be even."""
        even_heads(width, heads, "rotary-2d", by=4)

    def rotate(self, q, k, i, j):
        """Both turned."""
        return rotary_2d(q, i, self.columns, self.base), rotary_2d(k, j, self.columns, self.base)
