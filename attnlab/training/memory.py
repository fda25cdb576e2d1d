"""Memory that is not there: what to lower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from attnlab.training.config import Train


class OutOfMemoryError(Exception):
    """What was asked for does not fit into memory; one line that says what to lower."""

    exit_code = 2


@contextmanager
def fitting(train: Train, doing: str) -> Iterator[None]:
    """Turns what jax and numpy say of memory that is not there into an OutOfMemoryError that says what to lower."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        said = " ".join(str(error).split())
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in said:
            raise
        batch, lanes = train.batch_size, len(train.lanes)
        raise OutOfMemoryError(
            f"out of memory while {doing} ({said[:160] or 'the system has no more'}): lower train.batch_size={batch}"
            f" (with train.accumulate={2 * train.accumulate} half of it does the same), "
            + (f"train {lanes} lanes in several runs (train.seeds, train.learning_rate), " if lanes > 1 else "")
            + "or lower model.width, model.layers or the task's lengths, with another --out DIR; "
            "what was trained so far is intact"
        ) from error
