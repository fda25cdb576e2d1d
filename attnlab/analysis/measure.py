"""Measuring: seconds and bytes of programs, side by side, and what this machine does at best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis import cost
from attnlab.analysis.roofline import Machine


@dataclass(frozen=True)
class Program:
    """Something that can be timed.

    `run` computes and waits until it is done; `answer` gives what it computes as numpy's arrays. `memory` is the bytes
    of temporaries and outputs, `moved` the bytes that no way of computing it can spare: arguments and outputs. None is
    not known.
    """

    run: Callable[[], Any]
    answer: Callable[[], Any] = lambda: None
    compile_seconds: float | None = None
    memory: int | None = None
    moved: int | None = None
    flops: int | None = None


def compiled(function: Callable, *arguments: Any) -> Program:
    """A jax function and its arguments as a program: compiled now, so that no run of it compiles.

    Memory is the compiler's own estimate; FLOPs are counted from the trace, loops included.
    """
    begun = perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    seconds = perf_counter() - begun
    # On the device before any clock starts.
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
    """Seconds of each program, `repeat` times each: in turn, and each turn in the opposite order of the one before.

    So what slows the machine for a while slows all alike, and none always follows the same other. One run of each,
    not counted, comes first. Raises ValueError for a repeat below 1.
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
class Spread:
    """A median between its quartiles."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median and the quartiles.

    >>> spread([1.0, 2.0, 3.0, 4.0, 5.0])
    Spread(median=3.0, low=2.0, high=4.0)
    """
    low, median, high = np.quantile(np.asarray(values, np.float64), (0.25, 0.5, 0.75))
    return Spread(float(median), float(low), float(high))


def times_faster(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """How many times longer theirs takes than ours: turn by turn, then the median and the quartiles."""
    return spread([their / our for our, their in zip(ours, theirs, strict=True)])


def machine(n: int | None = None, megabytes: int | None = None, repeat: int = 5) -> Machine:
    """This machine at its best: a float32 product of n×n matrices, and one pass over an array of that many megabytes.

    By default 2,048 and 256 on a CPU, 8,192 and 1,024 elsewhere, where smaller ones end before full speed is reached;
    products as jax is set to take them (`jax_default_matmul_precision`). The best of `repeat` runs of each counts.
    """
    on_cpu = jax.default_backend() == "cpu"
    n = (2048 if on_cpu else 8192) if n is None else n
    megabytes = (256 if on_cpu else 1024) if megabytes is None else megabytes
    square, long = jnp.ones((n, n), jnp.float32), jnp.ones(megabytes * 2**18, jnp.float32)
    programs = {"product": compiled(jnp.matmul, square, square), "pass": compiled(lambda x: x + 1, long)}
    seconds = {name: min(values) for name, values in timed(programs, repeat).items()}
    return Machine(jax.devices()[0].device_kind, 2 * n**3 / seconds["product"], 2 * long.nbytes / seconds["pass"])
