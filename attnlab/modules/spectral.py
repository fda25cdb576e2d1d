"""Spectral normalisation: weights divided by their largest singular value (Miyato et al. 2018)."""

from collections.abc import Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

# Number of squarings of a Gram matrix WᵀW, which yield its power 2^10 = 1,024. A singular value 1% below the largest
# one then contributes 0.99^2048 ≈ 1e-9.
SQUARINGS = 10

Module = TypeVar("Module", bound=nnx.Module)


def normalised(module: Module) -> Module:
    """Return the module with every weight W replaced by W / σ(W), where σ(W) is the largest singular value.

    Arrays with at most one axis, for example biases and scales, do not change. A convolution weight [h w C D] counts as
    the matrix [h·w·C, D] (section 2.1). Call this once for a batch, not for each example.

    The module must not have stacked layers, because a leading axis of layers would count as rows.
    """
    leaves, form = jax.tree.flatten(module)
    norms = iter(largest_singular_value([leaf.reshape(-1, leaf.shape[-1]) for leaf in leaves if leaf.ndim > 1]))
    return jax.tree.unflatten(form, [leaf / _above_zero(next(norms)) if leaf.ndim > 1 else leaf for leaf in leaves])


def largest_singular_value(weights: Sequence[Float[Array, "..."]]) -> list[Float[Array, ""]]:
    """Return the largest singular value σ(W) = ‖W v‖ of each weight [N M].

    The singular vector v counts as a constant, so the gradient is u vᵀ (eq. 12).

    Miyato et al. store u and update it by one power iteration per step (appendix A). This function stores nothing. It
    squares the smaller Gram matrix until one direction dominates, which is v, or u if W has more columns than rows. If
    several singular values are equal, it is a combination of their vectors.
    """
    if not weights:
        return []
    tall = [w if w.shape[0] >= w.shape[1] else w.T for w in weights]
    grams = [held.T @ held for held in map(jax.lax.stop_gradient, tall)]
    # One loop serves all matrices, padded to the size of the largest. Zeros around a matrix stay zeros in its powers.
    size = max(map(len, grams))
    power = jnp.stack([jnp.pad(gram, (0, size - len(gram))) for gram in grams])
    power = jax.lax.fori_loop(0, SQUARINGS, lambda _, power: jax.vmap(_squared)(power), power)
    directions = jax.vmap(_direction)(power)
    return [_length(w @ v[: w.shape[1]]) for w, v in zip(tall, directions, strict=True)]


def _squared(power: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Return the square of a Gram matrix, scaled beforehand so that it neither overflows nor vanishes."""
    power = power / _above_zero(jnp.max(jnp.abs(power)))
    return power @ power


def _direction(power: Float[Array, "M M"]) -> Float[Array, " M"]:
    """Return the dominant direction of a power of a Gram matrix, as a unit vector.

    It multiplies the column with the largest diagonal entry once more. Another column might be orthogonal to the
    dominant direction.
    """
    power = power / _above_zero(jnp.max(jnp.abs(power)))
    v = power @ power[:, jnp.argmax(jnp.diagonal(power))]
    return v / _above_zero(_length(v))


def _length(x: Float[Array, " N"]) -> Float[Array, ""]:
    """Return ‖x‖. Its gradient at zero is zero."""
    square = jnp.sum(x * x)
    return jnp.where(square > 0, jnp.sqrt(_above_zero(square)), 0)


def _above_zero(size: Float[Array, ""]) -> Float[Array, ""]:
    """Return the size, or one if it is zero. An array of zeros divided by it stays zero."""
    return jnp.where(size > 0, size, 1)
