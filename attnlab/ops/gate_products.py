"""Products of gates, from sums of their logarithms.

Nothing is ever the difference of two sums, which overflows as an exponential (exp(−sum) does at the 18th gate of e⁻⁵)
and, after one gate of e^−10000, no longer knows those that follow. Only the gates between two tokens are added up:
from the start of a part to a token, and from a token to the end of a part, for parts of 1, 2, 4, … tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.mask import Places


class GateSums(NamedTuple):
    """Sums of log gates in parts of some size: `from_start` the start of a part up to a token and including it,
    `to_end` its end after the token; [M size G], with a gate a token (G = 1) or one a channel.
    """

    from_start: Float[Array, "M size G"]
    to_end: Float[Array, "M size G"]


def dyadic_sums(log_gates: Float[Array, "N C G"]) -> list[GateSums]:
    """The sums in parts of 1, 2, 4, … tokens, up to a whole chunk; its end filled up with open gates."""
    N, _, G = log_gates.shape
    filled = _fill(log_gates).reshape(-1, 1, G)
    sums = [GateSums(filled, jnp.zeros_like(filled))]
    while sums[-1].from_start.shape[0] > N:
        (a, b), (c, d) = ((_first(x), _second(x)) for x in sums[-1])
        since = jnp.concatenate([a, b + a[:, -1:]], axis=1)
        until = jnp.concatenate([c + b[:, -1:], d], axis=1)
        sums.append(GateSums(since, until))
    return sums


def chunk_sums(sums: list[GateSums], C: int) -> GateSums:
    """The sums over chunks of C tokens."""
    return GateSums(*(x[:, :C] for x in sums[-1]))


def gated_scores(
    rows: tuple[Float[Array, "N C K"], ...],
    k: Float[Array, "N C K"],
    sums: list[GateSums],
    pairs: Bool[Places, "#N C C"],
) -> tuple[Float[Array, "N C C"], ...]:
    """Σ_κ q_tκ k_sκ a_{s+1,κ} … a_tκ for the pairs of a chunk that meet, s ≤ t, for each q of `rows`."""
    C = k.shape[1]
    if sums[0].from_start.shape[-1] == 1:
        gates = jnp.exp(by_tokens(sums)[:, :C, :C])
        squares = tuple(product * gates for product in _products(rows, k))
    else:
        squares = by_channels(rows, k, sums)
    return tuple(jnp.where(pairs, square[:, :C, :C], 0) for square in squares)


def by_tokens(sums: list[GateSums]) -> Float[Array, "N size size"]:
    """The log gates after token s up to t, for s ≤ t; zero for s > t."""
    square = jnp.zeros_like(sums[0].from_start)
    for since, until in sums[:-1]:
        square = stack(square, _second(since) + jnp.swapaxes(_first(until), 1, 2))
    return square


def by_channels(
    rows: tuple[Float[Array, "N C K"], ...], k: Float[Array, "N C K"], sums: list[GateSums]
) -> tuple[Float[Array, "N size size"], ...]:
    """Σ_κ q_tκ k_sκ a_{s+1,κ} … a_tκ for s ≤ t; zero for s > t.

    By halves: what the later half reads of the earlier one is gated from the border on, and what the earlier one
    writes is gated up to it, so that the rest is one product. Halves of halves are done alike, down to single tokens.
    """
    K = k.shape[2]
    rows, k = tuple(_fill(row) for row in rows), _fill(k)
    squares = tuple(jnp.sum(row * k, axis=2).reshape(-1, 1, 1) for row in rows)
    for since, until in sums[:-1]:
        halves = lambda x, half=since.shape[1]: x.reshape(-1, half, K)
        late, early = jnp.exp(_second(since)), _first(halves(k)) * jnp.exp(_first(until))
        below = _products(tuple(_second(halves(row)) * late for row in rows), early)
        squares = tuple(stack(square, low) for square, low in zip(squares, below, strict=True))
    return squares


def stack(square: Float[Array, "M h h"], low: Float[Array, "m h h"]) -> Float[Array, "m w w"]:
    """[[A, 0], [C, B]] from squares A and B that follow each other, and C: lower triangular where A and B are."""
    a, b = _first(square), _second(square)
    upper, lower = jnp.concatenate([a, jnp.zeros_like(a)], axis=2), jnp.concatenate([low, b], axis=2)
    return jnp.concatenate([upper, lower], axis=1)


def _first(x):
    """Of parts that follow each other in pairs, every first."""
    return jax.lax.slice_in_dim(x, 0, None, 2)


def _second(x):
    """Of parts that follow each other in pairs, every second."""
    return jax.lax.slice_in_dim(x, 1, None, 2)


def _fill(x):
    """Chunks with zeros at their end, up to a power of two."""
    C = x.shape[1]
    more = (1 << (C - 1).bit_length()) - C
    return jnp.pad(x, ((0, 0), (0, more), (0, 0))) if more else x


def _products(rows, k):
    """Every row of each by every row of k.

    Each in a product of its own: under a `jax.vmap` over queries alone, what keys make of keys (and with it the state)
    must stay free of that axis.
    """
    turned = jnp.swapaxes(k, 1, 2)
    return tuple(row @ turned for row in rows)
