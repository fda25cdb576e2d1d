"""What a mechanism is given: arrays of one example and one head, and extras by name, checked before all else."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Shaped

from attnlab.ops.mask import Places


def arrays(*given: Any) -> tuple[Any, ...]:
    """What was given as jax arrays: numpy's cannot be looked up by traced positions."""
    return tuple(x if x is None else jnp.asarray(x) for x in given)


def check_shapes(mechanism: Any, q, k, v, extra: dict, new: bool = False) -> None:
    """Raises ValueError, naming what does not fit, unless q [T K], k [S K], v [S V] and the extras are of one head.

    `new`: they are T new tokens, so that T = S.
    """
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}"
    if not q.ndim == k.ndim == v.ndim == 2:
        raise ValueError(f"{mechanism}: {shapes} are not [T K], [S K], [S V] of one head: lift others by jax.vmap")
    (T, K), (S, V) = q.shape, v.shape
    if k.shape != (S, K) or (new and T != S):
        raise ValueError(
            f"{mechanism}: {shapes} do not fit: they must be {'[T K], [T K], [T V]' if new else '[T K], [S K], [S V]'}"
        )
    for names, rows in ((mechanism.tokens, (S,)), (mechanism.learned, ())):
        for name, shape in names.items():
            if extra[name].shape != (wanted := (*rows, *shape_of(shape, K, V))):
                raise ValueError(f"{mechanism}: {name} {extra[name].shape} must be {wanted} beside {shapes}")


def select(keep: Bool[Places, " S"], x: Shaped[Array, "S ..."]) -> Shaped[Array, "S ..."]:
    """X where kept, zero elsewhere."""
    return jnp.where(keep.reshape(keep.shape + (1,) * (x.ndim - 1)), x, jnp.zeros_like(x))


def split(extra: dict, names) -> tuple[dict, dict]:
    """The extras of those names, and the others."""
    return {n: v for n, v in extra.items() if n in names}, {n: v for n, v in extra.items() if n not in names}


def shape_of(shape: tuple, K: int, V: int) -> tuple[int, ...]:
    """A declared shape with "K" and "V" replaced by the widths."""
    return tuple(K if size == "K" else V if size == "V" else size for size in shape)
