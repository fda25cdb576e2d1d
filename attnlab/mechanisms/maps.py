"""The map of any mechanism: its weights, as its response to v = I.

Every mechanism is linear in v, so the T×S map stands in what it makes of the identity: one function for softmax, linear
and delta alike.

A mechanism whose extras are as wide as the values, such as an output gate for every channel, has a map for every
channel: A_c[t, s] = ∂y[t, c] / ∂v[s, c]. The identity does not fit its width. Its map is the mean over channels: the
mean of what it makes of values that are 1 in every channel of one token, and 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.causal import causal
from attnlab.mechanisms.wrapper import Wrapper
from attnlab.ops.mask import Causal, Full, Mask, Places
from attnlab.ops.tree import pytree


def weights(
    mechanism: Mechanism, q: Shaped[Places, "T K"], k: Shaped[Places, "S K"], mask: Mask = Full(), **extra: Any
) -> Float[Array, "T S"]:
    """The map [T S] with which `mechanism` mixes values: row t holds the weight of every key for query t.

    Through `extend` where the mask is `Causal()`, the mechanism decodes, and T = S; else through `attend`. Where an
    extra is as wide as the values, the map is the mean over their channels. Takes and raises what those do.
    """
    q, k = jnp.asarray(q), jnp.asarray(k)
    S = k.shape[0]

    def answer(v):
        if isinstance(mask, Causal) and mechanism.stateful and q.shape[0] == S and not {"i", "j"} & set(extra):
            return causal(mechanism, q, k, v, **extra)
        return mechanism.attend(q, k, v, mask, **extra)

    eye, width = jnp.eye(S, dtype=k.dtype), value_width(mechanism, extra)
    return answer(eye) if width is None else mean_over_channels(answer, eye, width)


def value_width(mechanism: Mechanism, extra: dict[str, Any]) -> int | None:
    """V, as the extras of a call tell it; None where no extra is as wide as the values."""
    for shapes, first in ((mechanism.tokens, 1), (mechanism.learned, 0)):
        for name, shape in shapes.items():
            if "V" in shape and name in extra:
                return jnp.shape(extra[name])[first + shape.index("V")]
    return None


def mean_over_channels(
    answer: Callable[[Float[Array, "S V"]], Float[Array, "T V"]], tokens: Float[Array, "N S"], width: int
) -> Float[Array, "T N"]:
    """The mean over `width` channels of what `answer` makes of each row of `tokens`, the same in every channel.

    Some rows at a time, so that what is in memory at once is about as large as the map.
    """
    one = lambda row: jnp.mean(answer(jnp.repeat(row[:, None], width, axis=1)), axis=1)
    return jax.lax.map(one, tokens, batch_size=max(1, -(-len(tokens) // width))).T


@pytree
@dataclass(frozen=True)
class WatchedState:
    """A state, the same state for v = I, and the map [N N] of the tokens so far.

    Where an extra is as wide as the values, `echo` is N states, one for each token's place.
    """

    inner: Any
    echo: Any
    map: Any
    count: Any

    @property
    def memory(self) -> Any:
        """What the mechanism itself remembers."""
        return self.inner.memory


@dataclass(frozen=True)
class Watched(Wrapper):
    """`mechanism`, with a state that also holds its map: to look inside a model, swap this in.

    Costs the map besides, O(T·S); results are those of `mechanism`.
    """

    @property
    def _wide(self) -> bool:
        """Whether an extra is as wide as the values."""
        shapes = (*self.mechanism.tokens.values(), *self.mechanism.learned.values())
        return any("V" in shape for shape in shapes)

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
    def query_head_axes(self):
        """The map, which is of queries, and what is so in the mechanism's state."""
        return WatchedState(self.mechanism.query_head_axes, self.mechanism.query_head_axes, 0, None)

    def sees_all(self, length):
        """As the mechanism."""
        return self.mechanism.sees_all(length)

    def weights(self, q, k, allowed, **given):
        """As the mechanism."""
        return self.mechanism.weights(q, k, allowed, **given)

    def attend(self, q, k, v, mask=Full(), **extra):
        """As the mechanism."""
        return self.mechanism.attend(q, k, v, mask, **extra)

    def causal(self, q, k, v, **extra):
        """As the mechanism."""
        return causal(self.mechanism, q, k, v, **extra)

    def look(self, q, k, mask=Full(), **extra):
        """The map of the call."""
        return weights(self.mechanism, q, k, mask, **extra)

    def init_state(self, rows, K, V, dtype=None):
        """The mechanism's, and an empty map of so many rows."""
        inner = self.mechanism.init_state(rows, K, V, dtype)
        if self._wide:
            echo = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], rows, axis=0), inner)
        else:
            echo = self.mechanism.init_state(rows, K, rows, dtype)
        return WatchedState(inner, echo, jnp.zeros((rows, rows), jnp.result_type(float)), jnp.zeros((), jnp.int32))

    def extend(self, state, q, k, v, *, keep=None, **extra):
        """The mechanism's answer; the new tokens' rows join the map, padding left out."""
        N, T = state.map.shape[0], q.shape[0]
        kept = jnp.ones(T, bool) if keep is None else keep
        # The map's row of a token is its row in the cache: as many as were kept before it.
        slot = state.count + jnp.cumsum(kept, dtype=jnp.int32) - 1
        values = jax.nn.one_hot(slot, N, dtype=v.dtype)
        if self._wide:

            def respond(echo, column):
                v_of_one = jnp.repeat(column[:, None], v.shape[1], axis=1)
                y, echo = self.mechanism.extend(echo, q, k, v_of_one, keep=keep, **extra)
                return jnp.mean(y, axis=1), echo

            rows, echo = jax.vmap(respond, in_axes=(0, 1), out_axes=(1, 0))(state.echo, values)
        else:
            rows, echo = self.mechanism.extend(state.echo, q, k, values, keep=keep, **extra)
        y, inner = self.mechanism.extend(state.inner, q, k, v, keep=keep, **extra)
        drawn = state.map.at[jnp.where(kept, slot, N)].set(rows.astype(state.map.dtype), mode="drop")
        return y, WatchedState(inner, echo, drawn, state.count + jnp.sum(kept, dtype=jnp.int32))
