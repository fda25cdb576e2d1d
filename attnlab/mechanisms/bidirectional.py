"""Attention to both sides with a mechanism that reads the past only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from attnlab.mechanisms.checked import CheckedMechanism
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.mechanisms.inputs import split
from attnlab.mechanisms.position_state import initial_block
from attnlab.mechanisms.whole import Whole
from attnlab.mechanisms.wrapper import Wrapper
from attnlab.ops.mask import And, Full, KeyPadding, Mask, QueryPadding, Segments


@final
@dataclass(frozen=True)
class Bidirectional(Whole, Wrapper):
    """Adds the outputs of a causal mechanism on the sequence and on the reversed sequence.

    y = f(x) + reverse(f(reverse(x)))

    So a mechanism that reads the past only can encode and classify. Both directions share queries, keys, values and
    learned arrays. A token reads its own value twice. Masks may hide keys and queries, and may separate segments. Rows
    of padding are zero. There must be as many queries as keys, in the order of their positions. The tokens of a segment
    must follow each other, and a query must see the segment of its own key, or one without keys. Otherwise its output
    is NaN, because segments are not known while tracing.

    Raises:
        ValueError: if `mechanism` cannot decode, or supports other masks than `Causal()` itself.

    Source: Zhu et al. 2024, algorithm 1 (Vision Mamba, arXiv 2401.09417), with shared parameters.
    """

    mechanism: CheckedMechanism = GatedDelta()
    """Mechanism that reads the past only."""

    def __post_init__(self):
        inner = self.mechanism.traits
        if not inner.decodes or inner.non_causal:
            raise ValueError(f"mechanism={self.mechanism} does not read the past only, so it needs no second direction")

    @property
    def traits(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As in the wrapped mechanism, but it cannot decode and supports masks other than `Causal()`."""
        return replace(self.mechanism.traits, decodes=False, non_causal=True, bias=False, self_only=True)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **extra):
        """Attends in both directions."""
        T = q.shape[0]
        if k.shape[0] != T:
            raise NotImplementedError(f"{self} needs as many queries as keys, got {T} and {k.shape[0]}")
        ordered = jnp.all(i == j) & jnp.all(jnp.diff(i) > 0)
        if not isinstance(ordered, Tracer) and not ordered:
            raise NotImplementedError(
                f"{self} needs queries and keys of the same tokens, in the order of their positions"
            )
        keep, segments = self._rows(mask, i, j)
        segment = None if segments is None else segments.key
        per_token, rest = split(extra, {**self.tokens, **self.queries})
        columns = (q, k, v, per_token, keep, segment)

        def forward(columns):
            q, k, v, per_token, keep, segment = columns
            block = initial_block(T, None, keep, segment)
            return self.mechanism.attend_causal(q, k, v, block, **per_token, **rest)

        reverse = lambda tree: jax.tree.map(lambda x: x[::-1], tree)
        y = forward(columns) + reverse(forward(reverse(columns)))
        y = y if segments is None else _within_segments(y, segments)
        return jnp.where(ordered, y, jnp.nan) if isinstance(ordered, Tracer) else y

    def cost(self, T, S, K, V, block=None):
        """Counts both directions, and their sum."""
        one = self.mechanism.cost(T, S, K, V)
        return Cost(2 * one.flops + T * V, one.bytes, 0)

    def _rows(self, mask: Mask, i, j):
        """Returns which tokens are no padding [T], and the segments, or None for what the mask says nothing about.

        Raises:
            NotImplementedError: if the mask says something else.
        """
        match mask:
            case Full():
                return None, None
            case KeyPadding():
                return jnp.asarray(mask.keep)[j].astype(bool), None
            case QueryPadding():
                return jnp.asarray(mask.keep)[i].astype(bool), None
            case Segments():
                return None, Segments(jnp.asarray(mask.query)[i], jnp.asarray(mask.key)[j])
            case And():
                (keep, segments), (also, other) = self._rows(mask.one, i, j), self._rows(mask.other, i, j)
                if segments is None or other is None:
                    return _joined(keep, also), other if segments is None else segments
        raise NotImplementedError(f"{self} supports masks of padding and of one set of segments, got {mask}")


def _joined(keep, also):
    """Returns which tokens both arrays keep. None keeps all."""
    return also if keep is None else keep if also is None else keep & also


def _within_segments(y: Float[Array, "T V"], segments: Segments) -> Float[Array, "T V"]:
    """Returns the outputs of queries that are keys of the segment that they see.

    A query whose segment has no keys returns zero. Every other query that is not a key of its own segment, and all
    queries if the tokens of a segment do not follow each other, return NaN.
    """
    query, key = jnp.asarray(segments.query), jnp.asarray(segments.key)
    changes = lambda ids: jnp.sum(ids[1:] != ids[:-1], dtype=jnp.int32)
    successive = changes(key) == changes(jnp.sort(key))
    some = jnp.isin(query, key)
    supported = successive & (~some | (query == key))
    return jnp.where(supported[:, None], jnp.where(some[:, None], y, 0), jnp.nan)
