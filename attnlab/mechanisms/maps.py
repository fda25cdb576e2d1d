"""The attention map of any mechanism, computed as its response to v = I.

Every mechanism is linear in v, so its T×S map is its output for the identity matrix. One function therefore covers
softmax, linear attention and delta rules.

A mechanism with an extra input as wide as the values, for example an output gate per channel, has one map per channel:
A_c[t, s] = ∂y[t, c] / ∂v[s, c]. The identity does not have the width of such values. The map is then the mean over
channels. It is computed from values that are 1 in every channel of one token and 0 elsewhere, and their outputs are
averaged over channels. If further values enter as an extra input, the output for values of zero is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Shaped

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.causal import causal
from attnlab.ops.mask import ArrayOrNumpy, Causal, Full, Mask


class Observer(Protocol):
    """A function of a mechanism and the arguments of a call. Must be hashable, as functions are."""

    def __call__(self, mechanism: Mechanism, q: Array, k: Array, mask: Mask, **given: PyTree) -> Float[Array, "T S"]:
        """Returns one number for every pair of a query and a key."""
        ...


def weights(
    mechanism: Mechanism,
    q: Shaped[ArrayOrNumpy, "T K"],
    k: Shaped[ArrayOrNumpy, "S K"],
    mask: Mask = Full(),
    **extra: PyTree,
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
        if isinstance(mask, Causal) and mechanism.traits.decodes and q.shape[0] == S and not {"i", "j"} & set(extra):
            return causal(mechanism, q, k, v, **extra)
        return mechanism.attend(q, k, v, mask, **extra)

    eye, width = jnp.eye(S, dtype=k.dtype), value_width(mechanism, extra)
    if width is None:
        return answer(eye)
    rest = answer(jnp.zeros((S, width), k.dtype))
    return mean_over_channels(lambda v: answer(v) - rest, eye, width)


def value_width(mechanism: Mechanism, extra: dict[str, PyTree]) -> int | None:
    """Returns V, taken from the extra inputs of a call, or None if no extra input is as wide as the values."""
    for shapes, first in ((mechanism.tokens, 1), (mechanism.queries, 1), (mechanism.learned, 0)):
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
