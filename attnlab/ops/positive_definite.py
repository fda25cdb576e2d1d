"""Linear systems with a symmetric positive definite matrix, solved by matrix products.

The decompositions of `jax.scipy.linalg` call LAPACK, whose batched kernels wait on a CPU for threads of the pool that
they run in. Two that run at the same time on two cores can wait for each other forever (jaxlib 0.10.2).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Matrices up to this size are inverted column by column. Larger inverses are composed of halves.
SMALL = 8


def solve(a: Float[Array, "K K"], b: Float[Array, " K"]) -> Float[Array, " K"]:
    """Returns x with a x = b.

    Args:
      a: symmetric positive definite matrix [K K].
      b: right-hand side [K].
    """
    inverse = _inverse(jax.lax.stop_gradient(a))

    def refined(_, b):
        x = inverse @ b
        return x + inverse @ (b - a @ x)

    # The derivatives are those of the equation: each is one more system with the same matrix.
    return jax.lax.custom_linear_solve(lambda x: a @ x, b, refined, symmetric=True)


def _inverse(a: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """Returns the inverse, composed of the inverses of the first half and of its Schur complement."""
    half = len(a) // 2
    if len(a) <= SMALL:
        return _swept(a)
    beside = a[:half, half:]
    first = _inverse(a[:half, :half])
    from_first = first @ beside
    last = _inverse(a[half:, half:] - beside.T @ from_first)
    corner = from_first @ last
    return jnp.block([[first + corner @ from_first.T, -corner], [-corner.T, last]])


def _swept(a: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """Returns the inverse, by the sweep operator on one column after the other."""

    def sweep(n, a):
        here = jnp.arange(len(a)) == n
        row, pivot = jnp.where(here, 0, a[n]), a[n, n]
        line = jnp.where(here, -1 / pivot, row / pivot)
        rest = a - jnp.outer(row, row / pivot)
        return jnp.where(here[:, None], line[None, :], jnp.where(here[None, :], line[:, None], rest))

    return -jax.lax.fori_loop(0, len(a), sweep, a)


def flops(K: int) -> int:
    """Returns the operations of one system of K equations."""
    return _inverse_flops(K) + 6 * K * K


def _inverse_flops(K: int) -> int:
    if K <= SMALL:
        return 5 * K**3
    half = K // 2
    rest = K - half
    products = 2 * half * half * rest + 4 * half * rest * rest + 2 * half * rest * half
    return _inverse_flops(half) + _inverse_flops(rest) + products + K * K
