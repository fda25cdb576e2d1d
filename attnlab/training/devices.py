"""Where lanes and batches lie when there are several devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


@dataclass(frozen=True)
class Devices:
    """Lanes lie over the rows of a mesh of devices, the examples of a batch over its columns.

    What is computed is the same, in another order of sums: numbers agree to rounding, bits do not.
    """

    mesh: Mesh

    @property
    def lanes(self) -> NamedSharding:
        """The place of what has an axis of lanes first: a state."""
        return NamedSharding(self.mesh, PartitionSpec("lanes"))

    @property
    def batches(self) -> NamedSharding:
        """The place of batches [steps, lanes, examples, ...]."""
        return NamedSharding(self.mesh, PartitionSpec(None, "lanes", "batch"))

    @property
    def whole(self) -> NamedSharding:
        """The place of what every device has all of."""
        return NamedSharding(self.mesh, PartitionSpec())

    def __str__(self) -> str:
        rows, columns = self.mesh.devices.shape
        return f"on {rows * columns} devices: lanes over {rows}, each batch over {columns}"


def devices(lanes: int, examples: int, given: Sequence[Any] | None = None) -> Devices | None:
    """As many of the devices there are (or of those given) as divide lanes and examples evenly, lanes first.

    None where that is one.

    >>> devices(3, 32, jax.devices()[:1]) is None
    True
    """
    given = jax.devices() if given is None else given
    rows = gcd(lanes, len(given))
    columns = gcd(examples, len(given) // rows)
    if rows * columns == 1:
        return None
    return Devices(Mesh(np.array(given[: rows * columns]).reshape(rows, columns), ("lanes", "batch")))
