"""A readable error for a lack of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from attnlab.training.config import Train


class OutOfMemoryError(Exception):
    """The program does not fit into memory. The message is one line that says which fields to lower."""

    exit_code = 2


@contextmanager
def readable_memory_errors(train: Train, doing: str) -> Iterator[None]:
    """Converts memory errors of JAX and numpy into an OutOfMemoryError.

    Args:
        train: The training configuration, whose values the message names.
        doing: What was being done, for the message.

    Raises:
        OutOfMemoryError: If the block raises a MemoryError, or a JAX error with RESOURCE_EXHAUSTED.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        message = " ".join(str(error).split())
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in message:
            raise
        batch, lanes = train.batch_size, len(train.lanes)
        raise OutOfMemoryError(
            f"out of memory while {doing} ({message[:160] or type(error).__name__}); reduce train.batch_size={batch}"
            f" (half of it with train.accumulate={2 * train.accumulate} is equivalent), "
            + (f"train the {lanes} lanes in several runs (train.seeds, train.learning_rate), " if lanes > 1 else "")
            + "or reduce model.width, model.layers or the task's lengths, with another --out DIR; "
            "the results so far are intact"
        ) from error
