"""The attention map of any mechanism, computed as its response to v = I.

Every mechanism is linear in v, so its T×S map is its output for the identity matrix. One function therefore covers
softmax, linear attention and delta rules.

A mechanism with an extra input as wide as the values, for example an output gate per channel, has one map per channel:
A_c[t, s] = ∂y[t, c] / ∂v[s, c]. The identity does not have the width of such values. The map is then the mean over
channels. It is computed from values that are 1 in every channel of one token and 0 elsewhere, and their outputs are
averaged over channels.
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
    """Returns the attention map [T S] with which a mechanism mixes values.

    Row t holds the weight of every key for query t. Uses `extend` if the mask is `Causal()`, the mechanism decodes, T =
    S and no positions are given. Otherwise uses `attend`. If an extra input is as wide as the values, the map is the
    mean over channels.

    Args:
        mechanism: the mechanism.
        q: queries [T K].
        k: keys [S K].
        mask: which query may see which key. Default: all.
        **extra: further arguments of `attend` or `extend`, for example `i`, `bias` and extra inputs by name.

    Returns:
        Weights [T S].

    Raises:
        ValueError: as `attend` and `extend`.
        NotImplementedError: as `attend` and `extend`.
        TypeError: as `attend` and `extend`.
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
    """Returns V, taken from the extra inputs of a call, or None if no extra input is as wide as the values."""
    for shapes, first in ((mechanism.tokens, 1), (mechanism.learned, 0)):
        for name, shape in shapes.items():
            if "V" in shape and name in extra:
                return jnp.shape(extra[name])[first + shape.index("V")]
    return None


def mean_over_channels(
    answer: Callable[[Float[Array, "S V"]], Float[Array, "T V"]], tokens: Float[Array, "N S"], width: int
) -> Float[Array, "T N"]:
    """Returns the mean over channels of the outputs for values that are equal in all channels.

    Rows are processed some at a time, so that memory stays near the size of the map.

    Args:
        answer: function from values [S V] to outputs [T V].
        tokens: N rows of one number per token [N S]. Each row is repeated over `width` channels.
        width: number of channels V.

    Returns:
        Map [T N].
    """
    one = lambda row: jnp.mean(answer(jnp.repeat(row[:, None], width, axis=1)), axis=1)
    return jax.lax.map(one, tokens, batch_size=max(1, -(-len(tokens) // width))).T


@pytree
@dataclass(frozen=True)
class WatchedState:
    """State of `Watched`: the mechanism's state, its state for v = I, and the map so far."""

    inner: Any
    """State of the mechanism."""
    echo: Any
    """State of the mechanism for v = I. If an extra input is as wide as the values: N states, one per row of the map.
    """
    map: Any
    """Attention map [N N] of the tokens so far."""
    count: Any
    """Number of tokens that are kept so far."""

    @property
    def memory(self) -> Any:
        """Memory of the wrapped mechanism."""
        return self.inner.memory


@dataclass(frozen=True)
class Watched(Wrapper):
    """Wraps a mechanism so that its state also holds its attention map.

    Replace a mechanism of a model with this wrapper to inspect the model. Outputs are those of `mechanism`. The map
    takes O(T·S) more time and memory.
    """

    @property
    def _wide(self) -> bool:
        """Whether an extra input is as wide as the values."""
        shapes = (*self.mechanism.tokens.values(), *self.mechanism.learned.values())
        return any("V" in shape for shape in shapes)

    @property
    def turns(self):
        """As in the wrapped mechanism."""
        return self.mechanism.turns

    @property
    def rowwise(self):
        """As in the wrapped mechanism."""
        return self.mechanism.rowwise

    @property
    def pairwise(self):
        """As in the wrapped mechanism."""
        return self.mechanism.pairwise

    @property
    def remembers(self):
        """As in the wrapped mechanism."""
        return self.mechanism.remembers

    @property
    def attends(self):
        """As in the wrapped mechanism."""
        return self.mechanism.attends

    @property
    def query_head_axes(self):
        """Axes of the map, which belongs to a query head, and of such parts of the mechanism's state."""
        return WatchedState(self.mechanism.query_head_axes, self.mechanism.query_head_axes, 0, None)

    def sees_all(self, length):
        """As in the wrapped mechanism."""
        return self.mechanism.sees_all(length)

    def weights(self, q, k, allowed, **given):
        """Returns the weights of the wrapped mechanism."""
        return self.mechanism.weights(q, k, allowed, **given)

    def attend(self, q, k, v, mask=Full(), **extra):
        """Returns the output of the wrapped mechanism."""
        return self.mechanism.attend(q, k, v, mask, **extra)

    def causal(self, q, k, v, **extra):
        """Returns the output of the wrapped mechanism."""
        return causal(self.mechanism, q, k, v, **extra)

    def look(self, q, k, mask=Full(), **extra):
        """Returns the attention map of the call."""
        return weights(self.mechanism, q, k, mask, **extra)

    def init_state(self, rows, K, V, dtype=None):
        """Returns the state of the wrapped mechanism, and an empty map of `rows` tokens."""
        inner = self.mechanism.init_state(rows, K, V, dtype)
        if self._wide:
            echo = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], rows, axis=0), inner)
        else:
            echo = self.mechanism.init_state(rows, K, rows, dtype)
        return WatchedState(inner, echo, jnp.zeros((rows, rows), jnp.result_type(float)), jnp.zeros((), jnp.int32))

    def extend(self, state, q, k, v, *, keep=None, **extra):
        """Returns the output of the wrapped mechanism, and adds a row to the map for each kept token."""
        N, T = state.map.shape[0], q.shape[0]
        kept = jnp.ones(T, bool) if keep is None else keep
        # A token's row in the map is its row in the cache: the number of tokens kept before it.
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
