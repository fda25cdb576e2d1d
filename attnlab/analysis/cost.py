"""The cost of a computation, counted from its jaxpr. Nothing is compiled, and nothing runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp

from attnlab.ops.trip_counts import annotated_trip_counts


def parameters(tree: Any) -> int:
    """Returns the number of elements in a tree of arrays or of their shapes."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def size(tree: Any) -> int:
    """Returns the bytes of a tree of arrays or of their shapes, without random keys."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.number)]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


@dataclass(frozen=True)
class Operation:
    """One operation of a traced call."""

    name: str
    """Name of the jax primitive."""
    sizes: tuple[int, ...]
    """(batch, m, k, n) for a matrix product; for any other operation the shape of its first output."""
    dtype: str
    """Dtype of its first output."""
    flops: int
    """Floating-point operations each time it runs."""
    bytes: int
    """Bytes that it reads and writes by itself. A compiler that fuses it with its neighbours moves fewer."""
    rounds: int | Fraction = 1
    """How often it runs, on average over what runs it."""


def flops(function: Callable, *arguments: Any) -> int:
    """Counts the floating-point operations of a call, loops included.

    A product of [m k] and [k n] counts 2·m·k·n. A reduction or a scattered sum counts one per element that it reads.
    Any other operation on floats counts one per element that it writes, unless it only moves data (`MOVES`). A loop of
    unknown length counts as one round, and only the most expensive of several branches counts. Annotations of
    `attnlab.ops.trip_counts` override both.

    Args:
      function: a jax function.
      *arguments: its arguments, as arrays or as shapes (`jax.ShapeDtypeStruct`).
    """
    return total(operations(function, *arguments))


def total(found: Iterable[Operation]) -> int:
    """Returns the floating-point operations of all given operations, with their rounds."""
    return round(sum(each.rounds * each.flops for each in found))


def operations(function: Callable, *arguments: Any) -> list[Operation]:
    """Returns every operation of a call in its order; those of a loop appear once, with their rounds.

    They are counted as by `flops`.

    Args:
      function: a jax function.
      *arguments: its arguments, as arrays or as shapes.
    """
    return _walk(jax.make_jaxpr(function)(*arguments).jaxpr)


def _walk(jaxpr: Any) -> list[Operation]:
    """Returns the operations of a jaxpr."""
    return [found for equation in jaxpr.eqns for found in _equation(equation)]


def _equation(equation: Any) -> list[Operation]:
    """Returns the operations of one equation, including those of the jaxprs that it calls."""
    name, settings = _name(equation), equation.params
    # The jaxpr in a scatter or a reduction combines two elements. It is not a call, so it is skipped.
    called = [] if name.startswith(("scatter", "reduce")) else settings.values()
    inner = [_walk(jaxpr) for value in called for jaxpr in _jaxprs(value)]
    if inner:
        often = _rounds(equation, inner)
        return [replace(x, rounds=n * x.rounds) for n, found in zip(often, inner, strict=True) if n for x in found]
    sizes, work = _work(equation)
    moved = 0 if name in FREE else sum(_bytes(x) for x in (*equation.invars, *equation.outvars))
    dtype = str(getattr(equation.outvars[0].aval, "dtype", "")) if equation.outvars else ""
    return [Operation(name, sizes, dtype, work, moved)]


def _name(equation: Any) -> str:
    """Returns the primitive's name, without the prefix of the matrix product that `attnlab.ops.dense` defines."""
    return equation.primitive.name.removeprefix("rows_")


def _rounds(equation: Any, inner: list[list[Operation]]) -> Sequence[int | Fraction]:
    """Returns how often each jaxpr that an operation calls runs."""
    name = equation.primitive.name
    if name == "scan":
        return [equation.params["length"]] * len(inner)
    known = annotated_trip_counts(str(equation.source_info.name_stack))
    if name == "cond":
        dearest = max(range(len(inner)), key=lambda n: total(inner[n]))
        fits = known if known and len(known) == len(inner) else None
        return fits or [int(n == dearest) for n in range(len(inner))]
    return known[:1] * len(inner) if known and name == "while" else [1] * len(inner)


def _work(equation: Any) -> tuple[tuple[int, ...], int]:
    """Returns the sizes and the floating-point operations of one operation."""
    name, settings = _name(equation), equation.params
    sizes = equation.outvars[0].aval.shape if equation.outvars else ()
    outputs = sum(math.prod(out.aval.shape) for out in equation.outvars if _is_float(out))
    if name == "dot_general":
        sizes = _product(equation)
        return sizes, 2 * outputs * sizes[2]
    if name == "conv_general_dilated":
        kernel, numbers = equation.invars[1].aval.shape, settings["dimension_numbers"]
        return sizes, 2 * outputs * math.prod(kernel) // kernel[numbers.rhs_spec[0]]
    if name.startswith("scatter-"):
        return sizes, math.prod(equation.invars[2].aval.shape) if outputs else 0
    if name.startswith(("reduce", "cum")):
        return sizes, sum(math.prod(x.aval.shape) for x in equation.invars if _is_float(x))
    return sizes, 0 if name in MOVES else outputs


def _product(equation: Any) -> tuple[int, int, int, int]:
    """Returns (batch, m, k, n) of `batch` products of [m k] and [k n]."""
    (contracted, _), (batched, _) = equation.params["dimension_numbers"]
    left, right = (x.aval.shape for x in equation.invars[:2])
    batch, k = (math.prod(left[axis] for axis in axes) for axes in (batched, contracted))
    return batch, math.prod(left) // max(1, batch * k), k, math.prod(right) // max(1, batch * k)


def _bytes(variable: Any) -> int:
    """Returns the bytes of a variable of a jaxpr."""
    shape, dtype = getattr(variable.aval, "shape", ()), getattr(variable.aval, "dtype", None)
    return math.prod(shape) * getattr(dtype, "itemsize", 0)


# Operations that only move data.
MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice",
    "dynamic_update_slice", "gather", "iota", "pad", "reshape", "rev", "scatter", "select_n", "slice", "squeeze",
    "stop_gradient", "transpose",
}  # fmt: skip

# Operations that move no bytes once compiled: views of the same data, and values made where they are needed.
FREE = {"broadcast_in_dim", "iota", "reshape", "squeeze", "stop_gradient"}


def _is_float(variable: Any) -> bool:
    """Returns whether a variable of a jaxpr has a floating-point dtype."""
    return jnp.issubdtype(getattr(variable.aval, "dtype", jnp.int32), jnp.floating)


def _jaxprs(value: Any) -> list[Any]:
    """Returns the jaxprs in a parameter of an equation."""
    if hasattr(value, "eqns"):
        return [value]
    if hasattr(value, "jaxpr"):
        return [value.jaxpr]
    return [each for entry in value for each in _jaxprs(entry)] if isinstance(value, tuple | list) else []
