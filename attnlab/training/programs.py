"""Compiled programs: their keys, what messages say of them, and their memory."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

import jax
import numpy as np
from jax.stages import Compiled
from jaxtyping import PyTree


def ahead_result(future: Future[Compiled] | None) -> Compiled | None:
    """Waits for a program. Returns None if it was not compiled. Compiling it again raises the reason."""
    if future is None:
        return None
    try:
        return future.result()
    except (Exception, CancelledError):
        return None


def program_key(what: str, batches: PyTree) -> tuple:
    """Returns the key of a compiled program: its name and the shapes of its batches."""
    return what, tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(batches))


def sizes_text(batches: PyTree, leading: int) -> str:
    """Describes the sizes of a batch, without its first `leading` axes (steps and lanes).

    >>> import numpy as np
    >>> sizes_text({"source": np.zeros((32, 24)), "target": np.zeros((32, 12)), "label": np.zeros(32)}, 0)
    'batch 32, 24 and 12 tokens'
    >>> sizes_text({"image": np.zeros((8, 1, 64, 28, 28))}, 2)
    'batch 64, 28×28'
    """
    shapes = [x.shape[leading:] for x in jax.tree.leaves(batches)]
    size = max((shape[0] for shape in shapes if shape), default=0)
    lengths = " and ".join(dict.fromkeys(str(shape[1]) for shape in shapes if len(shape) == 2))
    areas = dict.fromkeys("×".join(map(str, shape[1:])) for shape in shapes if len(shape) > 2)
    return ", ".join([f"batch {size}", *([f"{lengths} tokens"] if lengths and not areas else []), *areas])


def peak_memory(program: Compiled) -> int:
    """Returns the peak memory of a compiled program in bytes.

    It is the size of arguments, outputs and temporaries. Buffers that outputs share with arguments count once.
    """
    if (found := program.memory_analysis()) is None:  # not every backend has it
        return 0
    outputs = found.output_size_in_bytes - found.alias_size_in_bytes
    return found.argument_size_in_bytes + outputs + found.temp_size_in_bytes


def filled(batch: dict[str, np.ndarray], like: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns a batch of the shapes of another one, so that the same program reads it. Its examples are repeated.

    If that is impossible, because the arrays of an example have other shapes, the batch is returned as it is.
    """
    fits = lambda a, b: np.shape(a)[1:] == np.shape(b)[1:] and len(a) <= len(b)
    if batch.keys() != like.keys() or not all(fits(x, like[name]) for name, x in batch.items()):
        return batch
    return {name: np.resize(x, np.shape(like[name])) for name, x in batch.items()}
