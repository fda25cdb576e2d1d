"""Nyström's approximation of a softmax map: landmarks, and the pseudo-inverse between them."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attnlab.ops.mask import Places
from attnlab.ops.order import by_position, ranks
from attnlab.ops.precision import accumulation_dtype, divide, matmul


def segments(keep: Bool[Places, " T"], place: Int[Places, " T"], count: int) -> Int[Array, " T"]:
    """Which of `count` segments of successive kept tokens each is in, by order of place; padding is in none (−1).

    Of n kept tokens the one of rank r is in segment ⌊r·min(count, n)/n⌋: lengths differ by one token at most, and no
    more than `count` tokens have a segment each.
    """
    rank, n = ranks(by_position(keep, place)), jnp.sum(jnp.asarray(keep), dtype=jnp.int32)
    return jnp.where(keep, rank * jnp.minimum(count, n) // jnp.maximum(n, 1), -1)


def means(x: Float[Array, "T K"], segment: Int[Array, " T"], count: int) -> Float[Array, "count K"]:
    """The mean of each segment, zero for an empty one (Xiong et al. 2021), in float32 at least."""
    # A product, not a scattered sum: the same numbers on every device, and its gradient is a product too.
    member = (jnp.arange(count, dtype=jnp.int32)[:, None] == segment[None, :]).astype(x.dtype)
    size = jnp.sum(member, axis=1, keepdims=True, dtype=accumulation_dtype(x.dtype))
    return divide(matmul(member, x), size)


def pseudo_inverse(a: Float[Array, "m n"], steps: int) -> Float[Array, "n m"]:
    """`steps` steps towards the Moore-Penrose inverse of a matrix whose rows are weights (Xiong et al. 2021, eq. 11).

    Z₀ = Aᵀ / ‖A‖₁‖A‖∞, then Z ← Z (13 I − AZ (15 I − AZ (7 I − AZ))) / 4. What a singular value σ of A has become in
    AZ, x in [0, 1], becomes 1 − (1−x)³(1 − x/4): near 1 the error is cubed, near 0 each step gains a factor 3.25. So
    s steps leave singular values far below 3.25^{−s/2} ‖A‖₁^{1/2} damped, not inverted; that bounds Z, and with it
    what rounding does.
    """
    eye = jnp.eye(a.shape[0], dtype=a.dtype)
    # Weights sum to one in a row, so ‖A‖∞ = 1; and to one at least in some column, where A is square.
    z = a.T / jnp.maximum(jnp.max(jnp.sum(a, axis=0)), 1)
    for _ in range(steps):
        x = matmul(a, z)
        z = matmul(z, 13 * eye - matmul(x, 15 * eye - matmul(x, 7 * eye - x))) / 4
    return z
