"""Products of gates, from their logarithms.

The product of the gates a_{s+1} … a_t is the exponential of a difference of cumulative sums, which is never positive:
nothing overflows, however small the gates (exp(−sum) alone does, at the 18th gate of e⁻⁵).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import Precision
from jaxtyping import Array, Bool, Float

from attnlab.ops.mask import Places

# Logarithms below this are taken for it: the exponential of either is zero. Sums of 256 such are exact in float32.
CLOSED = -(2.0**16)


class Sums(NamedTuple):
    """Cumulative sums of log gates within each chunk, [N C G], in two parts whose sum they are.

    Whole numbers sum without rounding, so that one gate of e^−10000 leaves those after it as exact as they were.
    G is 1 for a gate a token, K for one a channel.
    """

    whole: Float[Array, "..."]
    rest: Float[Array, "..."]

    @classmethod
    def of(cls, log_gates: Float[Array, "N C G"]) -> Sums:
        """The sums up to every token and including it."""
        log_gates = jnp.maximum(log_gates, CLOSED)
        whole = jax.lax.stop_gradient(jnp.round(log_gates))
        lower = np.tri(log_gates.shape[1], dtype=log_gates.dtype)
        # As a product: a scan over tokens costs more. In full precision, which accelerators have to be asked for.
        add = lambda x: jnp.einsum("ts,nsg->ntg", lower, x, precision=Precision.HIGHEST)
        return cls(add(whole), add(log_gates - whole))

    def map(self, f: Callable) -> Sums:
        """Both parts cut or reshaped alike."""
        return Sums(f(self.whole), f(self.rest))

    @property
    def last(self) -> Sums:
        """The sums over whole chunks, [N 1 G]."""
        return self.map(lambda x: x[:, -1:])

    def since(self, earlier: Sums, where: Bool[Places, "..."] | bool = True) -> Float[Array, "..."]:
        """The product of the gates after `earlier`; zero where not asked for."""
        difference = (self.whole - earlier.whole) + (self.rest - earlier.rest)
        # Masked before the exponential: backwards in time it overflows, and zero times infinity is no gradient.
        return jnp.exp(difference if where is True else jnp.where(where, difference, -jnp.inf))

    def product(self) -> Float[Array, "..."]:
        """The product of the gates so far."""
        return jnp.exp(self.whole + self.rest)


def weights(
    rows: tuple[Float[Array, "N C K"], ...],
    k: Float[Array, "N C K"],
    sums: Sums,
    pairs: Bool[Places, "N C C"],
) -> tuple[Float[Array, "N C C"], ...]:
    """Σ_κ q_tκ k_sκ a_{s+1,κ} … a_tκ for every pair of a chunk that meets, for each q of `rows`."""
    if sums.rest.shape[-1] > 1:
        return tuple(jnp.where(pairs, square, 0) for square in by_channels(rows, k, sums))
    turned = sums.map(lambda x: jnp.swapaxes(x, 1, 2))
    gates = sums.since(turned, pairs)
    return tuple(jnp.where(pairs, product * gates, 0) for product in _products(rows, k))


def by_channels(
    rows: tuple[Float[Array, "N C K"], ...], k: Float[Array, "N C K"], log_gates: Float[Array, "N C K"]
) -> tuple[Float[Array, "N C C"], ...]:
    """The same with a gate a channel, for s ≤ t; zero for s > t.

    By halves: what the later half reads of the earlier one is gated from the border on, and what the earlier one
    writes is gated up to it, so that the rest is one product. Halves of halves are done alike, down to single tokens.
    """
    C, K = k.shape[1:]
    size = 1 << (C - 1).bit_length()
    fill = lambda x: jnp.pad(x, ((0, 0), (0, size - C), (0, 0)))
    rows, k, since = tuple(fill(x) for x in rows), fill(k), fill(log_gates)
    squares = tuple(jnp.einsum("nck,nck->nc", row, k).reshape(-1, 1, 1) for row in rows)
    # Log gates from the start of a token's part up to it, and from it up to the end of the part.
    until, half = jnp.zeros_like(since), 1
    while half < size:
        halves = lambda x, half=half: x.reshape(-1, 2, half, K)
        since, until = halves(since), halves(until)
        late, early = jnp.exp(since[:, 1]), halves(k)[:, 0] * jnp.exp(until[:, 0])
        below = _products(tuple(halves(row)[:, 1] * late for row in rows), early)
        squares = tuple(stack(square, low) for square, low in zip(squares, below, strict=True))
        first, second = since[:, :1, -1:], since[:, 1:, -1:]
        since = jnp.concatenate([since[:, :1], since[:, 1:] + first], axis=1)
        until = jnp.concatenate([until[:, :1] + second, until[:, 1:]], axis=1)
        half *= 2
    return tuple(square[:, :C, :C] for square in squares)


def stack(square: Float[Array, "M h h"], low: Float[Array, "m h h"]) -> Float[Array, "m w w"]:
    """[[A, 0], [C, B]] from squares A and B that follow each other, and C: lower triangular where A and B are."""
    a, b = square[0::2], square[1::2]
    return jnp.concatenate([jnp.concatenate([a, jnp.zeros_like(a)], axis=2), jnp.concatenate([low, b], axis=2)], axis=1)


def _products(rows, k):
    """Every row of each by every row of k, in one product."""
    joined = jnp.concatenate(rows, axis=1) @ jnp.swapaxes(k, 1, 2)
    return jnp.split(joined, len(rows), axis=1)
