"""Products of gates, computed from sums of their logarithms.

No sum is ever the difference of two cumulative sums. The exponential of such a difference overflows: exp(−sum) does at
the 18th gate of e⁻⁵. Also, after one gate of e^−10000 the cumulative sum no longer resolves the gates that follow.
Instead only the gates between two tokens are added: from the start of a part to a token, and from a token to the end
of a part, for parts of 1, 2, 4, … tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.mask import ArrayOrNumpy


class GateSums(NamedTuple):
    """Sums of log gates within M parts of `size` tokens.

    There is one gate per token (G = 1) or one per channel (G = K).
    """

    from_start: Float[Array, "M size G"]
    """Sum from the start of the part up to and including each token [M size G]."""
    to_end: Float[Array, "M size G"]
    """Sum over the tokens after each token, up to the end of the part [M size G]."""


def dyadic_sums(log_gates: Float[Array, "N C G"]) -> list[GateSums]:
    """Returns the sums within parts of 1, 2, 4, … tokens, up to whole chunks.

    Args:
      log_gates: logarithms of the gates of N chunks [N C G].

    Returns:
      One `GateSums` per size of part. Chunks are padded with open gates to a power of two.
    """
    N, _, G = log_gates.shape
    filled = _fill(log_gates).reshape(-1, 1, G)
    sums = [GateSums(filled, jnp.zeros_like(filled))]
    while sums[-1].from_start.shape[0] > N:
        (a, b), (c, d) = ((_first(x), _second(x)) for x in sums[-1])
        # Two successive parts become one: sums from the start continue over the border, and sums to the end do so
        # from the other side. Logarithms are only ever added.
        since = jnp.concatenate([a, b + a[:, -1:]], axis=1)
        until = jnp.concatenate([c + b[:, -1:], d], axis=1)
        sums.append(GateSums(since, until))
    return sums


def chunk_sums(sums: list[GateSums], C: int) -> GateSums:
    """Returns the sums over whole chunks of C tokens, without the padding."""
    return GateSums(*(x[:, :C] for x in sums[-1]))


def gated_scores(
    rows: tuple[Float[Array, "N C K"], ...],
    k: Float[Array, "N C K"],
    sums: list[GateSums],
    pairs: Bool[ArrayOrNumpy, "#N C C"],
) -> tuple[Float[Array, "N C C"], ...]:
    """Returns Σ_κ q_tκ k_sκ a_{s+1,κ} … a_tκ for the pairs s ≤ t of each chunk that may meet.

    Args:
      rows: one or several sets of queries [N C K].
      k: keys [N C K].
      sums: the result of `dyadic_sums`.
      pairs: pairs that may meet [N C C] or [1 C C].

    Returns:
      For each set of queries, the products [N C C], zero for the other pairs.
    """
    C = k.shape[1]
    if sums[0].from_start.shape[-1] == 1:
        gates = jnp.exp(by_tokens(sums)[:, :C, :C])
        squares = tuple(product * gates for product in _products(rows, k))
    else:
        squares = by_channels(rows, k, sums)
    return tuple(jnp.where(pairs, square[:, :C, :C], 0) for square in squares)


def by_tokens(sums: list[GateSums]) -> Float[Array, "N size size"]:
    """Returns the sum of log gates after token s up to t, for s ≤ t; zero for s > t."""
    square = jnp.zeros_like(sums[0].from_start)
    for since, until in sums[:-1]:
        square = stack(square, _second(since) + jnp.swapaxes(_first(until), 1, 2))
    return square


def by_channels(
    rows: tuple[Float[Array, "N C K"], ...], k: Float[Array, "N C K"], sums: list[GateSums]
) -> tuple[Float[Array, "N size size"], ...]:
    """Returns Σ_κ q_tκ k_sκ a_{s+1,κ} … a_tκ for s ≤ t; zero for s > t.

    A part is split into halves. Queries of the later half are gated from the border on, and keys of the earlier half up
    to the border. The pairs between the halves are then one product. The halves are treated likewise, down to single
    tokens.

    Args:
      rows: one or several sets of queries [N C K].
      k: keys [N C K].
      sums: the result of `dyadic_sums`, with one gate per channel.

    Returns:
      For each set of queries, the products [N size size], where size is C padded to a power of two.
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
    """Joins each two successive squares A and B, and C, to [[A, 0], [C, B]].

    Args:
      square: the squares A, B, A, B, … [M h h].
      low: the blocks C [m h h], with m = M/2.

    Returns:
      Squares of twice the size [m 2h 2h].
    """
    a, b = _first(square), _second(square)
    upper, lower = jnp.concatenate([a, jnp.zeros_like(a)], axis=2), jnp.concatenate([low, b], axis=2)
    return jnp.concatenate([upper, lower], axis=1)


def _first(x):
    """Returns the first of each two successive parts."""
    return jax.lax.slice_in_dim(x, 0, None, 2)


def _second(x):
    """Returns the second of each two successive parts."""
    return jax.lax.slice_in_dim(x, 1, None, 2)


def _fill(x):
    """Pads chunks with zeros at their end, to a power of two."""
    C = x.shape[1]
    more = (1 << (C - 1).bit_length()) - C
    return jnp.pad(x, ((0, 0), (0, more), (0, 0))) if more else x


def _products(rows, k):
    """Multiplies each set of queries by the keys: row kᵀ.

    Each set has its own product. Concatenated, a `jax.vmap` over queries only would also add its axis to the products
    of keys with keys, and to the state.
    """
    turned = jnp.swapaxes(k, 1, 2)
    return tuple(row @ turned for row in rows)
