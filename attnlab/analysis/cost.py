"""What a computation costs, counted from what jax traces: nothing is compiled and nothing runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def parameters(tree: Any) -> int:
    """How many numbers a tree of arrays (or of their shapes) holds."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def size(tree: Any) -> int:
    """The bytes of a tree of arrays (or of their shapes); keys and clocks apart."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.number)]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


def flops(function: Callable, *arguments: Any) -> int:
    """Floating-point operations of a call, its loops included, for arguments given as arrays or shapes.

    A product of [m k] and [k n] counts 2·m·k·n, any other operation on floats one for each number it writes, a
    reduction one for each it reads. A loop of unknown length counts as one round, and of branches the dearest.
    """
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr)


def _count(jaxpr: Any) -> int:
    return sum(_equation(equation) for equation in jaxpr.eqns)


def _equation(equation: Any) -> int:
    name, settings = equation.primitive.name, equation.params
    inner = [each for value in settings.values() for each in _jaxprs(value)]
    if inner:
        costs = [_count(jaxpr) for jaxpr in inner]
        rounds = settings["length"] if name == "scan" else 1
        return rounds * (max(costs) if name == "cond" else sum(costs))
    outputs = sum(math.prod(out.aval.shape) for out in equation.outvars if _is_float(out))
    if name == "dot_general":
        (contracted, _), _ = settings["dimension_numbers"]
        return 2 * outputs * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
    if name == "conv_general_dilated":
        kernel, numbers = equation.invars[1].aval.shape, settings["dimension_numbers"]
        return 2 * outputs * math.prod(kernel) // kernel[numbers.rhs_spec[0]]
    if name.startswith("reduce_") or name.startswith("cum"):
        return sum(math.prod(x.aval.shape) for x in equation.invars if _is_float(x))
    return 0 if name in MOVES else outputs


# What moves numbers and computes none.
MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice",
    "dynamic_update_slice", "gather", "iota", "pad", "reshape", "rev", "select_n", "slice", "squeeze",
    "stop_gradient", "transpose",
}  # fmt: skip


def _is_float(variable: Any) -> bool:
    return jnp.issubdtype(getattr(variable.aval, "dtype", jnp.int32), jnp.floating)


def _jaxprs(value: Any) -> list[Any]:
    if hasattr(value, "eqns"):
        return [value]
    if hasattr(value, "jaxpr"):
        return [value.jaxpr]
    return [each for entry in value for each in _jaxprs(entry)] if isinstance(value, tuple | list) else []
