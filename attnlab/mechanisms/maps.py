"""The map of any mechanism: its weights, as its response to v = I.

Every mechanism is linear in v, so the T×S map stands in what it makes of the identity: one function for softmax, linear
and delta alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from attnlab.mechanisms.around import Around
from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.causal import causal
from attnlab.ops.mask import Causal, Full, Mask, Places
from attnlab.ops.tree import pytree


def weights(
    mechanism: Mechanism, q: Shaped[Places, "T K"], k: Shaped[Places, "S K"], mask: Mask = Full(), **extra: Any
) -> Float[Array, "T S"]:
    """The map [T S] with which `mechanism` mixes values: row t holds the weight of every key for query t.

    Through `extend` where the mask is `Causal()`, the mechanism decodes, and T = S; else through `attend`. Takes and
    raises what those do.
    """
    q, k = jnp.asarray(q), jnp.asarray(k)
    eye = jnp.eye(k.shape[0], dtype=k.dtype)
    if isinstance(mask, Causal) and mechanism.stateful and q.shape[0] == k.shape[0] and not {"i", "j"} & set(extra):
        return causal(mechanism, q, k, eye, **extra)
    return mechanism.attend(q, k, eye, mask, **extra)


@pytree
@dataclass(frozen=True)
class WatchedState:
    """A state, the same state for v = I, and the map [N N] of the tokens so far."""

    inner: Any
    echo: Any
    map: Any
    count: Any

    @property
    def memory(self) -> Any:
        """What the mechanism itself remembers."""
        return self.inner.memory


@dataclass(frozen=True)
class Watched(Around):
    """`mechanism`, with a state that also holds its map: to look inside a model, swap this in.

    Costs the map besides, O(T·S); results are those of `mechanism`.
    """

    @property
    def turns(self):
        """As the mechanism."""
        return self.mechanism.turns

    @property
    def rowwise(self):
        """As the mechanism."""
        return self.mechanism.rowwise

    @property
    def pairwise(self):
        """As the mechanism."""
        return self.mechanism.pairwise

    @property
    def remembers(self):
        """As the mechanism."""
        return self.mechanism.remembers

    @property
    def attends(self):
        """As the mechanism."""
        return self.mechanism.attends

    @property
    def apart(self):
        """The map, which is of queries, and what is so in the mechanism's state."""
        return WatchedState(self.mechanism.apart, self.mechanism.apart, 0, None)

    def oversees(self, length):
        """As the mechanism."""
        return self.mechanism.oversees(length)

    def weights(self, q, k, allowed, **given):
        """As the mechanism."""
        return self.mechanism.weights(q, k, allowed, **given)

    def attend(self, q, k, v, mask=Full(), **extra):
        """As the mechanism."""
        return self.mechanism.attend(q, k, v, mask, **extra)

    def whole(self, q, k, v, **extra):
        """As the mechanism."""
        return causal(self.mechanism, q, k, v, **extra)

    def look(self, q, k, mask=Full(), **extra):
        """The map of the call."""
        return weights(self.mechanism, q, k, mask, **extra)

    def room(self, rows, K, V, dtype=None):
        """The mechanism's, and an empty map of so many rows."""
        inner, echo = (self.mechanism.room(rows, K, width, dtype) for width in (V, rows))
        return WatchedState(inner, echo, jnp.zeros((rows, rows), jnp.result_type(float)), jnp.zeros((), jnp.int32))

    def extend(self, state, q, k, v, *, keep=None, **extra):
        """The mechanism's answer; the new tokens' rows join the map, padding left out."""
        N, T = state.map.shape[0], q.shape[0]
        kept = jnp.ones(T, bool) if keep is None else keep
        # The map's row of a token is its row in the cache: as many as were kept before it.
        slot = state.count + jnp.cumsum(kept, dtype=jnp.int32) - 1
        values = jax.nn.one_hot(slot, N, dtype=v.dtype)
        rows, echo = self.mechanism.extend(state.echo, q, k, values, keep=keep, **extra)
        y, inner = self.mechanism.extend(state.inner, q, k, v, keep=keep, **extra)
        drawn = state.map.at[jnp.where(kept, slot, N)].set(rows.astype(state.map.dtype), mode="drop")
        return y, WatchedState(inner, echo, drawn, state.count + jnp.sum(kept, dtype=jnp.int32))
