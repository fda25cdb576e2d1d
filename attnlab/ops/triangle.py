"""The inverse of unit lower triangular matrices, without matrix powers, which overflow."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.gate_products import stack

# Matrices up to this size are inverted by forward substitution. Larger inverses are composed of halves by products.
SMALL = 8


@jax.custom_jvp
def inverse(lower: Float[Array, "N C C"]) -> Float[Array, "N C C"]:
    """Returns (I + L)⁻¹, where L is the part of `lower` strictly below the diagonal.

    [[A, 0], [C, B]]⁻¹ = [[A⁻¹, 0], [−B⁻¹ C A⁻¹, B⁻¹]]. So every intermediate number belongs to the inverse of a part.

    Args:
      lower: square matrices [N C C].

    Returns:
      The inverses [N C C].
    """
    C = lower.shape[1]
    half = min(C, SMALL)
    size = half
    while size < C:
        size *= 2
    # The padding adds unit rows, which do not change the inverse of the original part.
    lower = jnp.pad(lower, ((0, 0), (0, size - C), (0, size - C)))
    part = lambda down, right, wide: lower[:, down : down + wide, right : right + wide]
    parts = [part(at, at, half) for at in range(0, size, half)]
    squares = _substituted(jnp.stack(parts, axis=1).reshape(-1, half, half))
    while half < size:
        below = jnp.stack([part(at + half, at, half) for at in range(0, size, 2 * half)], axis=1)
        joined = squares[1::2] @ below.reshape(-1, half, half) @ squares[0::2]
        squares, half = stack(squares, -joined), 2 * half
    return squares[:, :C, :C]


@inverse.defjvp
def _(primals, tangents):
    """The tangent dX = −X dL X takes two products. Differentiating through the steps would repeat all of them twice."""
    x = inverse(*primals)
    return x, -(x @ jnp.tril(tangents[0], -1) @ x)


def _substituted(lower):
    """Inverts small matrices by forward substitution: x_t = e_t − Σ_{s<t} L_ts x_s."""
    M, C, _ = lower.shape
    eye = jnp.broadcast_to(jnp.eye(C, dtype=lower.dtype), (M, C, C))
    rows = [eye[:, 0]]
    for t in range(1, C):
        rows.append(eye[:, t] - jnp.sum(lower[:, t, :t, None] * jnp.stack(rows, axis=1), axis=1))
    return jnp.stack(rows, axis=1)
