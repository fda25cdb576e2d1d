"""Measures the seconds and bytes of programs, and the peak performance of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from attnlab.analysis import cost
from attnlab.analysis.roofline import Machine


@dataclass(frozen=True)
class Program:
    """A computation that can be timed. None means that a number is not known."""

    run: Callable[[], PyTree]
    """Computes, and returns when it is done."""
    answer: Callable[[], PyTree] = lambda: None
    """Returns the result as numpy arrays."""
    compile_seconds: float | None = None
    """Seconds that compilation took."""
    memory: int | None = None
    """Bytes of temporaries and outputs."""
    moved: int | None = None
    """Bytes of arguments and outputs, which any implementation must move."""
    flops: int | None = None
    """Floating-point operations."""


def compiled(function: Callable, *arguments: PyTree) -> Program:
    """Compiles a jax function for its arguments, so that no run compiles.

    `memory` is the compiler's own estimate. `flops` is counted from the trace, loops included.

    Args:
      function: a jax function.
      *arguments: its arguments. They are moved to the device.
    """
    begun = perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    seconds = perf_counter() - begun
    # Move the arguments to the device before any clock starts.
    arguments = jax.block_until_ready(jax.tree.map(jnp.asarray, arguments))
    sizes = program.memory_analysis()
    memory = moved = None
    if sizes is not None:
        memory = sizes.temp_size_in_bytes + sizes.output_size_in_bytes
        moved = sizes.argument_size_in_bytes + sizes.output_size_in_bytes
    return Program(
        run=lambda: jax.block_until_ready(program(*arguments)),
        answer=lambda: jax.tree.map(np.asarray, program(*arguments)),
        compile_seconds=seconds,
        memory=memory,
        moved=moved,
        flops=cost.flops(function, *arguments),
    )


def timed(programs: Mapping[str, Program], repeat: int) -> dict[str, list[float]]:
    """Times each program, after one run that is not counted.

    The programs run in turn, and each turn reverses the order of the one before. So a temporary slowdown of the machine
    affects all alike, and no program always follows the same other one.

    Args:
      programs: programs by name.
      repeat: number of turns, at least 1.

    Returns:
      {name: seconds of each turn}.

    Raises:
      ValueError: if `repeat` is below 1.
    """
    if repeat < 1:
        raise ValueError(f"{repeat=} must be at least 1")
    for program in programs.values():
        program.run()
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(repeat):
        for name in sorted(programs, key=list(programs).index, reverse=bool(turn % 2)):
            begun = perf_counter()
            programs[name].run()
            seconds[name].append(perf_counter() - begun)
    return seconds


@dataclass(frozen=True)
class Quartiles:
    """A median and its quartiles."""

    median: float
    """The median."""
    low: float
    """The first quartile."""
    high: float
    """The third quartile."""


def quartiles(values: Sequence[float]) -> Quartiles:
    """Returns the median and the quartiles of some values.

    >>> quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    Quartiles(median=3.0, low=2.0, high=4.0)
    """
    low, median, high = np.quantile(np.asarray(values, np.float64), (0.25, 0.5, 0.75))
    return Quartiles(float(median), float(low), float(high))


def times_faster(ours: Sequence[float], theirs: Sequence[float]) -> Quartiles:
    """Returns the ratio theirs / ours of each turn, as the median and the quartiles."""
    return quartiles([their / our for our, their in zip(ours, theirs, strict=True)])


def machine(n: int | None = None, megabytes: int | None = None, repeat: int = 5) -> Machine:
    """Measures the peak performance of this machine.

    It times a float32 product of n×n matrices, and one pass over an array. The product has the precision that jax is
    set to (`jax_default_matmul_precision`).

    Args:
      n: size of the matrices. Defaults to 2,048 on a CPU and 8,192 elsewhere, where smaller products end before full
        speed is reached.
      megabytes: size of the array. Defaults to 256 on a CPU and 1,024 elsewhere.
      repeat: number of runs, of which the fastest counts. Defaults to 5.
    """
    on_cpu = jax.default_backend() == "cpu"
    n = (2048 if on_cpu else 8192) if n is None else n
    megabytes = (256 if on_cpu else 1024) if megabytes is None else megabytes
    square, long = jnp.ones((n, n), jnp.float32), jnp.ones(megabytes * 2**18, jnp.float32)
    programs = {"product": compiled(jnp.matmul, square, square), "pass": compiled(lambda x: x + 1, long)}
    seconds = {name: min(values) for name, values in timed(programs, repeat).items()}
    return Machine(jax.devices()[0].device_kind, 2 * n**3 / seconds["product"], 2 * long.nbytes / seconds["pass"])
