"""FLOATER: position vectors as points on the trajectory of a learned dynamical system."""

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
    """Points p(n · step) of a learned flow dp/dt = h(t, p), added in the layers (Liu et al. 2020).

    h(t, p) = W_2 tanh(W_1 [p ; t] + b_1) + b_2, and p(0) is learned. Any length is supported. The authors' code has
    other networks for h, with ReLU or SELU.

    As in the authors' code, a layer's p is added to what its self-attention computes queries, keys and values from, and
    not to the residual stream. In a pre-norm layer that is after the norm.
    """

    step: float = 0.1
    """Time between two positions."""
    hidden: int | None = None
    """Number of hidden units of h. None: the width of the model."""
    place: Literal["input", "layers"] = "layers"
    """Where p is added: to the input, or to the inputs of the self-attention in every layer.

    With "layers" each layer has its own p(0), and all share h. This is the paper's better variant (section 3.2).
    """
    data_driven = True

    def __post_init__(self):
        if not self.step > 0:
            raise ValueError(f"step={self.step} must be above 0")
        check_counts(hidden=self.hidden)
        if self.place not in ("input", "layers"):
            raise ValueError(f"place={self.place!r} must be one of input, layers")

    def create(self, key, width, heads, layers=1, causal=False):
        """Create the flow and its initial points."""
        return Flow(key, self, width, 1 if self.place == "input" else layers)


class Flow(PositionEncoding, nnx.Module):
    """The flow of `Floater`. Its paths are [L T D], or [1 T D] if p is added only to the input."""

    def __init__(self, key: PRNGKeyArray, config: Floater, width: int, paths: int):
        self.config = config
        hidden = config.hidden or width
        self.first = NoDecay(jax.random.normal(fold_key(key, "first"), (paths, width)) * LEVEL)
        self.inner = Dense(fold_key(key, "inner"), width + 1, hidden)
        self.outer = Dense(fold_key(key, "outer"), hidden, width)

    def __call__(self, t: Float[Array, ""], p: Float[Array, "L D"]) -> Float[Array, "L D"]:
        """Return h(t, p)."""
        time = jnp.broadcast_to(t.astype(p.dtype), (p.shape[0], 1))
        return self.outer(jnp.tanh(self.inner(jnp.concatenate([p, time], axis=1))))

    def table(self, length, dtype):
        """Return the first `length` points of the paths, [L length D], solved once instead of for every token."""
        first = self.first[...]
        return jnp.swapaxes(flow_path(self, first.astype(accumulation_dtype(dtype)), length, self.config.step), 0, 1)

    def add(self, x, i, table=None):
        """Return x + p_i if p is added to the input, else x."""
        if self.config.place != "input":
            return x
        return x + lookup(self._solved(x, table)[0], i, jnp.nan).astype(x.dtype)

    def per_layer(self, i, table):
        """Return p_i of each layer if p is added in the layers, else None."""
        return None if self.config.place == "input" else jax.vmap(lambda table: lookup(table, i, jnp.nan))(table)

    def _solved(self, x, table):
        return self.table(x.shape[0], x.dtype) if table is None else table
