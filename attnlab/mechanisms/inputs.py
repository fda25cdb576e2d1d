"""Checks and conversions of a mechanism's inputs: arrays of one example and one head, and extra inputs by name."""

from __future__ import annotations

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Shaped

from attnlab.mechanisms.base import Mechanism
from attnlab.ops.learned_score import Bias
from attnlab.ops.mask import ArrayOrNumpy, Mask
from attnlab.ops.mask.base import not_a_mask


def arrays(*given: ArrayLike | None) -> tuple:
    """Converts inputs other than None to jax arrays. A numpy array cannot be indexed by traced positions."""
    return tuple(x if x is None else jnp.asarray(x) for x in given)


def floats(*given: ArrayLike) -> tuple:
    """Converts queries, keys and values to jax arrays of real floating-point numbers.

    Integers become the default float.

    Raises:
        TypeError: if an array is complex.
    """
    converted = arrays(*given)
    for x in converted:
        if jnp.issubdtype(x.dtype, jnp.complexfloating):
            raise TypeError(f"expected arrays of real numbers, got {x.dtype}")
    return tuple(x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.result_type(float)) for x in converted)


def check_kinds(mechanism: Mechanism, mask: object, bias: object) -> None:
    """Raises TypeError, with a suggestion, if the mask is not a mask or the bias is not a function.

    Args:
        mechanism: the mechanism, for the message.
        mask: the mask, expected an instance of `Mask`.
        bias: the bias, expected a function `bias(q, i, j)` or None.
    """
    if not isinstance(mask, Mask):
        raise TypeError(f"{mechanism}: {not_a_mask(mask)}")
    check_bias(mechanism, bias)


def check_names(mechanism: Mechanism, extra: dict) -> None:
    """Raises TypeError for extra inputs that the mechanism does not take, and for missing ones, with their names."""
    constants = set(mechanism.heads(1))
    expected = {*mechanism.tokens, *mechanism.queries, *mechanism.learned, *constants}
    if unknown := set(extra) - expected:
        known = ", ".join(sorted(expected)) or "none"
        raise TypeError(f"{mechanism} got unexpected inputs {', '.join(sorted(unknown))}; expected: {known}")
    if missing := expected - set(extra):
        values = ", ".join(f"{name}=mechanism.heads(H)[{name!r}]" for name in sorted(missing & constants))
        hint = f"; pass {values} under jax.vmap over H heads, or one entry of it for one head" if values else ""
        raise TypeError(f"{mechanism} is missing inputs {', '.join(sorted(missing))}{hint}")


def check_bias(mechanism: Mechanism, bias: object) -> None:
    """Raises TypeError if the bias is not a function."""
    if bias is not None and not callable(bias):
        raise TypeError(f"{mechanism}: bias must be a function bias(q, i, j), got {type(bias).__name__}")


def check_rows(mechanism: Mechanism, rows: int, **given: ArrayLike | None) -> None:
    """Checks arrays with one entry per token. None is ignored.

    Raises:
        ValueError: if an array does not have the shape (rows,).
        TypeError: if positions or segment ids are not integers. Conversion would join segments 0.2 and 0.7.
    """
    for name, x in given.items():
        if x is not None and jnp.shape(x) != (rows,):
            raise ValueError(f"{mechanism}: {name} must have shape ({rows},), one entry per token, got {jnp.shape(x)}")
        if x is not None and name != "keep" and rows and jnp.issubdtype(jnp.asarray(x).dtype, jnp.inexact):
            raise TypeError(f"{mechanism}: {name} must hold integers, got {jnp.asarray(x).dtype}")


def check_shapes(mechanism: Mechanism, q, k, v, extra: dict, new: bool = False) -> None:
    """Raises ValueError unless q, k, v and the extra inputs have the shapes of one example and one head.

    Args:
        mechanism: the mechanism, for the message and for the shapes of its extra inputs.
        q: queries, expected [T K].
        k: keys, expected [S K].
        v: values, expected [S V].
        extra: extra inputs by name.
        new: True if they are T new tokens, so that T = S.
    """
    rows = "T" if new else "S"
    expected, shapes = f"q [T K], k [{rows} K], v [{rows} V]", f"q {q.shape}, k {k.shape}, v {v.shape}"
    if not q.ndim == k.ndim == v.ndim == 2:
        raise ValueError(f"{mechanism}: expected {expected} of one head, got {shapes}{_lifted(q, k, v, new)}")
    (T, K), (S, V) = q.shape, v.shape
    if k.shape != (S, K) or (new and T != S):
        raise ValueError(f"{mechanism}: shapes do not match: expected {expected}, got {shapes}")
    constants = dict.fromkeys(mechanism.heads(1), ())
    for names, rows in (
        (mechanism.tokens, (S,)),
        (mechanism.queries, (T,)),
        (mechanism.learned, ()),
        (constants, ()),
    ):
        for name, shape in names.items():
            if extra[name].shape != (needed := (*rows, *shape_of(shape, K, V))):
                got = extra[name].shape
                raise ValueError(f"{mechanism}: {name} must have shape {needed}, got {got}, with {shapes}")


def complete_extras(mechanism: Mechanism, extra: dict, bias: Bias | None) -> dict[str, Array]:
    """Checks the names of the extra inputs and the support of a bias. Returns the extra inputs as arrays.

    Args:
        mechanism: the mechanism that declares the extra inputs.
        extra: extra inputs by name.
        bias: function `bias(q, i, j)`, or None.

    Raises:
        NotImplementedError: if a bias is given and the mechanism does not support one.
        TypeError: if an extra input is unknown or missing.
    """
    if bias is not None and not mechanism.traits.bias:
        raise NotImplementedError(f"{mechanism} does not support a bias, got {bias}")
    check_names(mechanism, extra)
    return {name: jnp.asarray(value) for name, value in extra.items()}


def prepare_new_tokens(mechanism: Mechanism, q, k, v, i, keep, segment, bias, extra: dict) -> tuple:
    """Checks the inputs of T new tokens and converts them to arrays.

    Args:
        mechanism: the mechanism.
        q: queries [T K].
        k: keys [T K].
        v: values [T V].
        i: positions [T], or None.
        keep: False for padding [T], or None if there is none.
        segment: segment ids [T], or None.
        bias: function `bias(q, i, j)`, or None.
        extra: extra inputs by name.

    Returns:
        The tuple (q, k, v, keep, segment, extra). `i` is checked but not converted or returned.

    Raises:
        ValueError: if shapes do not fit.
        NotImplementedError: if the mechanism does not support a bias.
        TypeError: if an input is complex, positions or segment ids are not integers, `bias` is not a function, or an
            extra input is unknown or missing.
    """
    check_bias(mechanism, bias)
    extra = complete_extras(mechanism, extra, bias)
    (q, k, v), (keep, segment) = floats(q, k, v), arrays(keep, segment)
    check_shapes(mechanism, q, k, v, extra, new=True)
    check_rows(mechanism, q.shape[0], i=i, keep=keep, segment=segment)
    return q, k, v, None if keep is None else keep.astype(bool), segment, extra


def zero_padding(mechanism: Mechanism, rows, columns, q, k, v, extra: dict) -> tuple:
    """Sets padded rows of q, k, v and of the extra inputs per token to zero, before any product.

    Padding may hold NaN, and 0·NaN in a backward pass is NaN.

    Args:
        mechanism: the mechanism that declares the extra inputs.
        rows: False for queries that are padding [T], or None.
        columns: False for keys that are padding [S], or None.
        q: queries [T K].
        k: keys [S K].
        v: values [S V].
        extra: extra inputs by name.

    Returns:
        The tuple (q, k, v, extra).
    """
    keeps = dict.fromkeys(mechanism.tokens, columns) | dict.fromkeys(mechanism.queries, rows)
    extra = extra | {name: zero_where_padded(keep, extra[name]) for name, keep in keeps.items()}
    return zero_where_padded(rows, q), zero_where_padded(columns, k), zero_where_padded(columns, v), extra


def _lifted(q, k, v, new: bool) -> str:
    """Returns a hint to use `jax.vmap` if q, k and v have the same number of leading axes, else an empty string."""
    if not (more := q.ndim - 2) > 0 or not q.ndim == k.ndim == v.ndim:
        return ""
    call = "causal(mechanism, q, k, v)" if new else "mechanism.attend(q, k, v, mask)"
    lifted = f"{'jax.vmap(' * more}lambda q, k, v: {call}{')' * more}(q, k, v)"
    if more > 2:
        return f"; for leading axes, write {lifted}"
    batch = "B " * (more - 1)
    return f"; for [{batch}T H K], use attnlab.attention; for [{batch}H T K], write {lifted}"


def zero_where_padded(keep: Bool[ArrayOrNumpy, " S"] | None, x: Shaped[Array, "S ..."]) -> Shaped[Array, "S ..."]:
    """Returns x with zeros in the rows where `keep` is False. None keeps all rows."""
    if keep is None:
        return x
    return jnp.where(keep.reshape(keep.shape + (1,) * (x.ndim - 1)), x, jnp.zeros_like(x))


def split(extra: dict, names) -> tuple[dict, dict]:
    """Returns the extra inputs with these names, and the others."""
    return {n: v for n, v in extra.items() if n in names}, {n: v for n, v in extra.items() if n not in names}


def shape_of(shape: tuple, K: int, V: int) -> tuple[int, ...]:
    """Returns a declared shape with "K", "V" and "K/2" (rounded down) replaced by the widths.

    Args:
        shape: the declared shape of an extra input, of integers and these strings.
        K: width of keys.
        V: width of values.
    """
    return tuple(K if size == "K" else V if size == "V" else K // 2 if size == "K/2" else size for size in shape)
