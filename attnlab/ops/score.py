"""Scores: how well a query and a key fit, for every pair, before softmax."""

from jaxtyping import Array, Float

from attnlab.ops.precision import product


def dot(q: Float[Array, "T K"], k: Float[Array, "S K"]) -> Float[Array, "T S"]:
    """Dot product, q·k (Luong, Pham, Manning 2015, eq. 8)."""
    return product(q, k.T)


def scaled_dot(q: Float[Array, "T K"], k: Float[Array, "S K"]) -> Float[Array, "T S"]:
    """Scaled dot product, q·k / √K: of variance one for independent unit components (Vaswani et al. 2017, eq. 1)."""
    # The queries are scaled, not the scores: T·K products instead of T·S.
    return product(q * q.shape[-1] ** -0.5, k.T)


SCORES = {"dot": dot, "scaled_dot": scaled_dot}
