"""The cost of a computation, counted from its jaxpr. Nothing is compiled, and nothing runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jaxtyping import PyTree

from attnlab.ops.trip_counts import annotated_trip_counts


def parameters(tree: PyTree) -> int:
    """Returns the number of elements in a tree of arrays or of their shapes."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def size(tree: PyTree) -> int:
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


def flops(function: Callable, *arguments: PyTree) -> int:
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


def operations(function: Callable, *arguments: PyTree) -> list[Operation]:
    """Returns every operation of a call in its order; those of a loop appear once, with their rounds.

    They are counted as by `flops`.

    Args:
      function: a jax function.
      *arguments: its arguments, as arrays or as shapes.
    """
    return _walk(jax.make_jaxpr(function)(*arguments).jaxpr)


def _walk(jaxpr: Jaxpr) -> list[Operation]:
    """Returns the operations of a jaxpr."""
    return [found for equation in jaxpr.eqns for found in _equation(equation)]


def _equation(equation: JaxprEqn) -> list[Operation]:
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
    dtype = str(_array(equation.outvars[0]).dtype) if equation.outvars else ""
    return [Operation(name, sizes, dtype, work, moved)]


def _name(equation: JaxprEqn) -> str:
    """Returns the primitive's name, without the prefix of the matrix product that `attnlab.ops.dense` defines."""
    return equation.primitive.name.removeprefix("rows_")


def _rounds(equation: JaxprEqn, inner: list[list[Operation]]) -> Sequence[int | Fraction]:
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


def _work(equation: JaxprEqn) -> tuple[tuple[int, ...], int]:
    """Returns the sizes and the floating-point operations of one operation."""
    name, settings = _name(equation), equation.params
    sizes = _array(equation.outvars[0]).shape if equation.outvars else ()
    outputs = sum(_array(out).size for out in equation.outvars if _is_float(out))
    if name == "dot_general":
        sizes = _product(equation)
        return sizes, 2 * outputs * sizes[2]
    if name == "conv_general_dilated":
        kernel, numbers = _array(equation.invars[1]).shape, settings["dimension_numbers"]
        return sizes, 2 * outputs * math.prod(kernel) // kernel[numbers.rhs_spec[0]]
    if name.startswith("scatter-"):
        return sizes, _array(equation.invars[2]).size if outputs else 0
    if name.startswith(("reduce", "cum")):
        return sizes, sum(_array(x).size for x in equation.invars if _is_float(x))
    return sizes, 0 if name in MOVES else outputs


def _product(equation: JaxprEqn) -> tuple[int, int, int, int]:
    """Returns (batch, m, k, n) of `batch` products of [m k] and [k n]."""
    (contracted, _), (batched, _) = equation.params["dimension_numbers"]
    left, right = (_array(x).shape for x in equation.invars[:2])
    batch, k = (math.prod(left[axis] for axis in axes) for axes in (batched, contracted))
    return batch, math.prod(left) // max(1, batch * k), k, math.prod(right) // max(1, batch * k)


def _array(variable: Var | Literal) -> ShapedArray:
    """Returns the shape and dtype of a variable of a jaxpr."""
    assert isinstance(variable.aval, ShapedArray), f"not an array: {variable.aval}"
    return variable.aval


def _bytes(variable: Var | Literal) -> int:
    """Returns the bytes of a variable of a jaxpr."""
    return _array(variable).size * _array(variable).dtype.itemsize


# Operations that only move data.
MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice",
    "dynamic_update_slice", "gather", "iota", "pad", "reshape", "rev", "scatter", "select_n", "slice", "squeeze",
    "stop_gradient", "transpose",
}  # fmt: skip

# Operations that move no bytes once compiled: views of the same data, and values made where they are needed.
FREE = {"broadcast_in_dim", "iota", "reshape", "squeeze", "stop_gradient"}


def _is_float(variable: Var | Literal) -> bool:
    """Returns whether a variable of a jaxpr has a floating-point dtype."""
    return jnp.issubdtype(_array(variable).dtype, jnp.floating)


def _jaxprs(value: object) -> list[Jaxpr]:
    """Returns the jaxprs in a parameter of an equation."""
    if isinstance(value, Jaxpr):
        return [value]
    if isinstance(value, ClosedJaxpr):
        return [value.jaxpr]
    return [each for entry in value for each in _jaxprs(entry)] if isinstance(value, tuple | list) else []
