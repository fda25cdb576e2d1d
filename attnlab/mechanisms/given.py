"""What a mechanism is given: arrays of one example and one head, and extras by name, checked before all else."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Shaped

from attnlab.ops.mask import Mask, Places


def arrays(*given: Any) -> tuple[Any, ...]:
    """What was given as jax arrays: numpy's cannot be looked up by traced positions."""
    return tuple(x if x is None else jnp.asarray(x) for x in given)


def floats(*given: Any) -> tuple[Any, ...]:
    """The same of queries, keys and values, which are mixed: whole numbers become the default float.

    Raises TypeError for complex numbers, whose order no softmax knows.
    """
    found = arrays(*given)
    for x in found:
        if jnp.issubdtype(x.dtype, jnp.complexfloating):
            raise TypeError(f"attention is of real numbers, and an array of {x.dtype} was given")
    return tuple(x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.result_type(float)) for x in found)


def check_kinds(mechanism: Any, mask: Any, bias: Any) -> None:
    """Raises TypeError, naming it, for a mask that is none, or a bias that is no function."""
    if not isinstance(mask, Mask):
        told = mask.__name__ if isinstance(mask, type) else type(mask).__name__
        raise TypeError(f"{mechanism}: a mask is wanted, as Causal() or Kept(keep), not {told}")
    check_bias(mechanism, bias)


def check_bias(mechanism: Any, bias: Any) -> None:
    """Raises TypeError for a bias that is no function."""
    if bias is not None and not callable(bias):
        told = type(bias).__name__
        raise TypeError(f"{mechanism}: a bias is a function of queries and positions, bias(q, i, j), not {told}")


def check_rows(mechanism: Any, rows: int, **given: Any) -> None:
    """Raises ValueError, naming what has not one entry for each of so many tokens; None is left alone."""
    for name, x in given.items():
        if x is not None and jnp.shape(x) != (rows,):
            raise ValueError(f"{mechanism}: {name} {jnp.shape(x)} must be ({rows},): one entry a token")


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


def select(keep: Bool[Places, " S"] | None, x: Shaped[Array, "S ..."]) -> Shaped[Array, "S ..."]:
    """The rows x where kept, zero elsewhere; None: all are kept."""
    if keep is None:
        return x
    return jnp.where(keep.reshape(keep.shape + (1,) * (x.ndim - 1)), x, jnp.zeros_like(x))


def split(extra: dict, names) -> tuple[dict, dict]:
    """The extras of those names, and the others."""
    return {n: v for n, v in extra.items() if n in names}, {n: v for n, v in extra.items() if n not in names}


def shape_of(shape: tuple, K: int, V: int) -> tuple[int, ...]:
    """A declared shape with "K" and "V" replaced by the widths."""
    return tuple(K if size == "K" else V if size == "V" else size for size in shape)
