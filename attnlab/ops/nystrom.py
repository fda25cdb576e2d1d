"""Nyström's approximation of a softmax map: landmarks, and the pseudo-inverse between them."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.order import by_position, ranks
from attnlab.ops.precision import accumulation_dtype, divide, matmul


def segments(keep: Bool[ArrayOrNumpy, " T"], place: Int[ArrayOrNumpy, " T"], count: int) -> Int[Array, " T"]:
    """Assigns the kept tokens to `count` segments of consecutive tokens, in the order of their positions.

    Of n kept tokens, the one of rank r is in segment ⌊r·min(count, n)/n⌋. So lengths differ by at most one token. If
    there are no more than `count` tokens, each has its own segment.

    Args:
      keep: which tokens are no padding [T].
      place: position of each token [T].
      count: number of segments.

    Returns:
      Segment of each token [T], −1 for padding.
    """
    rank, n = ranks(by_position(keep, place)), jnp.sum(jnp.asarray(keep), dtype=jnp.int32)
    return jnp.where(keep, rank * jnp.minimum(count, n) // jnp.maximum(n, 1), -1)


def means(x: Float[Array, "T K"], segment: Int[Array, " T"], count: int) -> Float[Array, "count K"]:
    """Returns the mean of each segment, in float32 at least; zero for an empty one (Xiong et al. 2021).

    Args:
      x: rows [T K].
      segment: segment of each row [T], −1 for none.
      count: number of segments.

    Returns:
      Means [count K].
    """
    # A matrix product gives the same numbers on every device, unlike a scatter-add. Its gradient is a product too.
    member = (jnp.arange(count, dtype=jnp.int32)[:, None] == segment[None, :]).astype(x.dtype)
    size = jnp.sum(member, axis=1, keepdims=True, dtype=accumulation_dtype(x.dtype))
    return divide(matmul(member, x), size)


def pseudo_inverse(a: Float[Array, "m n"], steps: int) -> Float[Array, "n m"]:
    """Iterates towards the Moore-Penrose inverse of a matrix of attention weights (Xiong et al. 2021, eq. 11).

    Z₀ = Aᵀ / ‖A‖₁‖A‖∞, then Z ← Z (13 I − AZ (15 I − AZ (7 I − AZ))) / 4. By default, the authors' code divides by the
    largest ‖A‖₁ of all heads and examples of the batch, so that an output depends on the others. Here, as in the paper,
    each matrix has its own.

    Let x in [0, 1] be what a singular value σ of A has become in AZ. A step turns it into 1 − (1−x)³(1 − x/4). Near 1
    the error is cubed, and near 0 each step gains a factor 3.25. So after s steps, singular values far below
    3.25^{−s/2} ‖A‖₁^{1/2} are damped instead of inverted. This bounds Z, and with it the effect of rounding.

    Args:
      a: a matrix whose rows sum to one [m n].
      steps: number of iterations.

    Returns:
      The approximate inverse [n m].
    """
    eye = jnp.eye(a.shape[0], dtype=a.dtype)
    # Rows sum to one, so ‖A‖∞ = 1. If A is square, some column sums to one at least, so the floor of 1 changes nothing.
    z = a.T / jnp.maximum(jnp.max(jnp.sum(a, axis=0)), 1)
    for _ in range(steps):
        x = matmul(a, z)
        z = matmul(z, 13 * eye - matmul(x, 15 * eye - matmul(x, 7 * eye - x))) / 4
    return z
