"""The fingerprint of generated data."""

import hashlib
from collections.abc import Iterable

import numpy as np

from attnlab.tasks.base.text_interface import Batch


def fingerprint(task: object, batches: Iterable[Batch]) -> str:
    """Returns the sha256 of a task's configuration and of some batches that its generator makes.

    The batches are included so that another version of the generator gives another fingerprint.
    """
    digest = hashlib.sha256(repr(task).encode())
    for batch in batches:
        for name, values in batch.items():
            digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
