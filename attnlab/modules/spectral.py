"""Spectral normalisation: a module whose matrices have largest singular value one (Miyato et al. 2018)."""

from collections.abc import Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

SQUARINGS = 10  # a Gram matrix to the power of 1,024: what grows 1% less than the most is 1e-9 of it then

Module = TypeVar("Module", bound=nnx.Module)


def normalised(module: Module) -> Module:
    """The same module with W / σ(W) in the place of every weight W; biases, scales and single numbers as they are.

    A weight of a convolution [h w C D] counts as the matrix [h·w·C, D] (section 2.1). For modules whose layers are not
    stacked: a leading axis of layers would be taken for rows. To be called once for a batch, not for each example.
    """
    leaves, form = jax.tree.flatten(module)
    norms = iter(largest_singular_value([leaf.reshape(-1, leaf.shape[-1]) for leaf in leaves if leaf.ndim > 1]))
    return jax.tree.unflatten(form, [leaf / _above_zero(next(norms)) if leaf.ndim > 1 else leaf for leaf in leaves])


def largest_singular_value(weights: Sequence[Float[Array, "..."]]) -> list[Float[Array, ""]]:
    """σ(W) = ‖W v‖ of each weight [N M], its largest singular value; v is held: the gradient is u vᵀ (eq. 12).

    Miyato et al. remember u and turn it once a step (appendix A). Here nothing is remembered: the smaller Gram matrix
    is squared until one direction is left of it, which is v (of Wᵀ: u). In a tie it is a mixture of those that tie.
    """
    if not weights:
        return []
    tall = [w if w.shape[0] >= w.shape[1] else w.T for w in weights]
    grams = [held.T @ held for held in map(jax.lax.stop_gradient, tall)]
    # One loop for all, in the size of the greatest: zeros around a matrix add nothing but zeros to its powers.
    size = max(map(len, grams))
    power = jnp.stack([jnp.pad(gram, (0, size - len(gram))) for gram in grams])
    power = jax.lax.fori_loop(0, SQUARINGS, lambda _, power: jax.vmap(_squared)(power), power)
    directions = jax.vmap(_direction)(power)
    return [_length(w @ v[: w.shape[1]]) for w, v in zip(tall, directions, strict=True)]


def _squared(power: Float[Array, "M M"]) -> Float[Array, "M M"]:
    power = power / _above_zero(jnp.max(jnp.abs(power)))
    return power @ power


def _direction(power: Float[Array, "M M"]) -> Float[Array, " M"]:
    """Once more, on the column that has most of what is left: any other might be at right angles to it."""
    power = power / _above_zero(jnp.max(jnp.abs(power)))
    v = power @ power[:, jnp.argmax(jnp.diagonal(power))]
    return v / _above_zero(_length(v))


def _length(x: Float[Array, " N"]) -> Float[Array, ""]:
    """‖x‖, with a gradient of zero at zero."""
    square = jnp.sum(x * x)
    return jnp.where(square > 0, jnp.sqrt(_above_zero(square)), 0)


def _above_zero(size: Float[Array, ""]) -> Float[Array, ""]:
    """One in the place of zero: what is all zeros stays so."""
    return jnp.where(size > 0, size, 1)
