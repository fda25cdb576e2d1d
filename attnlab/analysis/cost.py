"""What a computation costs, counted from what jax traces: nothing is compiled and nothing runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp

from attnlab.ops.times import said


def parameters(tree: Any) -> int:
    """How many numbers a tree of arrays (or of their shapes) holds."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def size(tree: Any) -> int:
    """The bytes of a tree of arrays (or of their shapes); random keys apart."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.number)]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


@dataclass(frozen=True)
class Operation:
    """One operation of a traced call: what jax calls it, the sizes it works on, and what it costs each time.

    `sizes` of a product are (batch, m, k, n), of anything else the shape it writes. `bytes` are those that it reads
    and writes by itself; a compiler that fuses it with its neighbours moves fewer. `rounds` says how often it runs, on
    average over what runs it.
    """

    name: str
    sizes: tuple[int, ...]
    dtype: str
    flops: int
    bytes: int
    rounds: int | Fraction = 1


def flops(function: Callable, *arguments: Any) -> int:
    """Floating-point operations of a call, its loops included, for arguments given as arrays or shapes.

    A product of [m k] and [k n] counts 2·m·k·n, any other operation on floats one for each number it writes, unless it
    moves them alone (`MOVES`), a reduction and a scattered sum one for each that it reads. A loop of unknown length
    counts as one round, and of branches the dearest, but where `attnlab.ops.times` says how often they run.
    """
    return total(operations(function, *arguments))


def total(found: Iterable[Operation]) -> int:
    """The floating-point operations of them all."""
    return round(sum(each.rounds * each.flops for each in found))


def operations(function: Callable, *arguments: Any) -> list[Operation]:
    """Every operation of a call in its order, those of loops once with their rounds; counted as `flops` says."""
    return _walk(jax.make_jaxpr(function)(*arguments).jaxpr)


def _walk(jaxpr: Any) -> list[Operation]:
    return [found for equation in jaxpr.eqns for found in _equation(equation)]


def _equation(equation: Any) -> list[Operation]:
    name, settings = _name(equation), equation.params
    # What scatters and reduces says in a jaxpr how two numbers become one.
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
    """The primitive's name; `attnlab.ops.dense` has a matrix product of its own, which computes what others do."""
    return equation.primitive.name.removeprefix("rows_")


def _rounds(equation: Any, inner: list[list[Operation]]) -> Sequence[int | Fraction]:
    """How often each of what an operation calls runs."""
    name = equation.primitive.name
    if name == "scan":
        return [equation.params["length"]] * len(inner)
    known = said(str(equation.source_info.name_stack))
    if name == "cond":
        dearest = max(range(len(inner)), key=lambda n: total(inner[n]))
        fits = known if known and len(known) == len(inner) else None
        return fits or [int(n == dearest) for n in range(len(inner))]
    return known[:1] * len(inner) if known and name == "while" else [1] * len(inner)


def _work(equation: Any) -> tuple[tuple[int, ...], int]:
    """The sizes and the floating-point operations of one operation."""
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
    """(batch, m, k, n) of a product of `batch` pairs [m k] and [k n]."""
    (contracted, _), (batched, _) = equation.params["dimension_numbers"]
    left, right = (x.aval.shape for x in equation.invars[:2])
    batch, k = (math.prod(left[axis] for axis in axes) for axes in (batched, contracted))
    return batch, math.prod(left) // max(1, batch * k), k, math.prod(right) // max(1, batch * k)


def _bytes(variable: Any) -> int:
    shape, dtype = getattr(variable.aval, "shape", ()), getattr(variable.aval, "dtype", None)
    return math.prod(shape) * getattr(dtype, "itemsize", 0)


# What moves numbers and computes none.
MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice",
    "dynamic_update_slice", "gather", "iota", "pad", "reshape", "rev", "scatter", "select_n", "slice", "squeeze",
    "stop_gradient", "transpose",
}  # fmt: skip

# What a compiler gives no work: another view of the same numbers, or numbers made where they are needed.
FREE = {"broadcast_in_dim", "iota", "reshape", "squeeze", "stop_gradient"}


def _is_float(variable: Any) -> bool:
    return jnp.issubdtype(getattr(variable.aval, "dtype", jnp.int32), jnp.floating)


def _jaxprs(value: Any) -> list[Any]:
    if hasattr(value, "eqns"):
        return [value]
    if hasattr(value, "jaxpr"):
        return [value.jaxpr]
    return [each for entry in value for each in _jaxprs(entry)] if isinstance(value, tuple | list) else []
