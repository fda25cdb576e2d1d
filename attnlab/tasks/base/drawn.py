"""What tells the data of a task apart whose examples are drawn as they are asked for."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from attnlab.tasks.base.task import Batch


def fingerprint(task: Any, batches: Iterable[Batch]) -> str:
    """The sha256 of the task and of the first that its generator makes of it: another version of it is other data."""
    digest = hashlib.sha256(repr(task).encode())
    for batch in batches:
        for name, values in batch.items():
            digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
