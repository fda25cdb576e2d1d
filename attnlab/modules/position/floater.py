"""FLOATER: positions as points on the path of a learned dynamical system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.absolute import LEVEL
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.ops.counts import check_counts
from attnlab.ops.lookup import lookup
from attnlab.ops.position import flow_path
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class Floater(Position):
    """p(t) of a learned flow dp/dt = h(t, p), position n at t = n · step, added before the layers (Liu et al. 2020).

    h(t, p) = W_2 tanh(W_1 [p ; t] + b_1) + b_2, of `hidden` units (None: the width); p(0) is learned. `place` says
    where p is added: to the "input", or before every one of the "layers", which then start from their own p(0) and
    share h (the paper's better variant, section 3.2). Any length.

    Before a layer means to its input, so that p also runs along the residual stream, through the layers after it. The
    authors' code adds it inside the layer, to what queries, keys and values are made of, and not to the residual.
    """

    step: float = 0.1
    hidden: int | None = None
    place: Literal["input", "layers"] = "layers"
    data_driven = True

    def __post_init__(self):
        if not self.step > 0:
            raise ValueError(f"step={self.step} must be above 0")
        check_counts(hidden=self.hidden)
        if self.place not in ("input", "layers"):
            raise ValueError(f"place={self.place!r} must be one of input, layers")

    def create(self, key, width, heads, layers=1, causal=False):
        """The flow, and where it starts."""
        return Flow(key, self, width, 1 if self.place == "input" else layers)


class Flow(PositionEncoding, nnx.Module):
    """The flow of `Floater`; paths [L T D], or [1 T D] for the input alone."""

    def __init__(self, key: PRNGKeyArray, config: Floater, width: int, paths: int):
        self.config = config
        hidden = config.hidden or width
        self.first = NoDecay(jax.random.normal(fold_key(key, "first"), (paths, width)) * LEVEL)
        self.inner = Dense(fold_key(key, "inner"), width + 1, hidden)
        self.outer = Dense(fold_key(key, "outer"), hidden, width)

    def __call__(self, t: Float[Array, ""], p: Float[Array, "L D"]) -> Float[Array, "L D"]:
        """h(t, p)."""
        time = jnp.broadcast_to(t.astype(p.dtype), (p.shape[0], 1))
        return self.outer(jnp.tanh(self.inner(jnp.concatenate([p, time], axis=1))))

    def table(self, length, dtype):
        """The paths' first `length` points, [L length D]: solved once, not for every token."""
        first = self.first[...]
        return jnp.swapaxes(flow_path(self, first.astype(accumulation_dtype(dtype)), length, self.config.step), 0, 1)

    def add(self, x, i, table=None):
        """The input x + p_i, where it is added to the input."""
        if self.config.place != "input":
            return x
        return x + lookup(self._solved(x, table)[0], i, jnp.nan).astype(x.dtype)

    def per_layer(self, i, table):
        """p_i of each layer, where it is added there."""
        return None if self.config.place == "input" else jax.vmap(lambda table: lookup(table, i, jnp.nan))(table)

    def _solved(self, x, table):
        return self.table(x.shape[0], x.dtype) if table is None else table
