"""Attention to both sides with a mechanism that reads the past only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

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
    of padding are zero. There must be as many queries as keys. The tokens of a segment must follow each other, and a
    token must belong to one segment; otherwise the output is NaN.

    Raises:
        ValueError: if `mechanism` cannot decode, or supports other masks than `Causal()` itself.

    Source: Zhu et al. 2024, algorithm 1 (Vision Mamba, arXiv 2401.09417), with shared parameters.
    """

    mechanism: CheckedMechanism = GatedDelta()
    """Mechanism that reads the past only."""

    def __post_init__(self):
        inner = self.mechanism.traits
        if not inner.decodes or inner.any_mask:
            raise ValueError(f"mechanism={self.mechanism} does not read the past only, so it needs no second direction")

    @property
    def traits(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As in the wrapped mechanism, but it cannot decode and supports masks other than `Causal()`."""
        return replace(self.mechanism.traits, decodes=False, any_mask=True, bias=False)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **extra):
        """Attends in both directions."""
        T = q.shape[0]
        if k.shape[0] != T:
            raise NotImplementedError(f"{self} needs as many queries as keys, got {T} and {k.shape[0]}")
        keep, segment = self._rows(mask, i, j)
        per_token, rest = split(extra, {**self.tokens, **self.queries})
        columns = (q, k, v, per_token, keep, segment)

        def forward(columns):
            q, k, v, per_token, keep, segment = columns
            block = initial_block(T, None, keep, segment)
            return self.mechanism.attend_causal(q, k, v, block, **per_token, **rest)

        reverse = lambda tree: jax.tree.map(lambda x: x[::-1], tree)
        y = forward(columns) + reverse(forward(reverse(columns)))
        return y if segment is None else jnp.where(_successive(segment), y, jnp.nan)

    def cost(self, T, S, K, V, block=None):
        """Counts both directions, and their sum."""
        one = self.mechanism.cost(T, S, K, V)
        return Cost(2 * one.flops + T * V, one.bytes, 0)

    def _rows(self, mask: Mask, i, j):
        """Returns which tokens are no padding and their segments, each [T], or None if the mask says nothing about it.

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
                query, key = jnp.asarray(mask.query)[i], jnp.asarray(mask.key)[j]
                # Queries and keys of the same token belong to one segment. Otherwise the segments count as broken.
                return None, jnp.where(jnp.all(query == key), key, jnp.arange(len(key), dtype=key.dtype) % 2)
            case And():
                (keep, segment), (also, other) = self._rows(mask.one, i, j), self._rows(mask.other, i, j)
                if segment is None or other is None:
                    return _joined(keep, also), other if segment is None else segment
        raise NotImplementedError(f"{self} supports masks of padding and of one set of segments, got {mask}")


def _joined(keep, also):
    """Returns which tokens both arrays keep. None keeps all."""
    return also if keep is None else keep if also is None else keep & also


def _successive(segment: Int[Array, " T"]) -> Bool[Array, ""]:
    """Returns whether the tokens of each segment follow each other."""
    changes = lambda ids: jnp.sum(ids[1:] != ids[:-1], dtype=jnp.int32)
    return changes(segment) == changes(jnp.sort(segment))
