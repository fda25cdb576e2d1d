"""The sharding of lanes and batches over several devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


@dataclass(frozen=True)
class Devices:
    """A mesh of devices: lanes are distributed over its rows, the examples of a batch over its columns.

    Sharding changes the order of sums. Results agree with those of one device up to rounding, but not bit for bit.
    """

    mesh: Mesh
    """The mesh, with axes "lanes" and "batch"."""

    @property
    def lanes(self) -> NamedSharding:
        """The sharding of arrays with a leading axis of lanes, for example a state."""
        return NamedSharding(self.mesh, PartitionSpec("lanes"))

    @property
    def batches(self) -> NamedSharding:
        """The sharding of batches [steps, lanes, examples, ...]."""
        return NamedSharding(self.mesh, PartitionSpec(None, "lanes", "batch"))

    @property
    def replicated(self) -> NamedSharding:
        """The sharding of arrays that are replicated on every device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def __str__(self) -> str:
        rows, columns = self.mesh.devices.shape
        return f"on {rows * columns} devices: lanes over {rows}, each batch over {columns}"


def devices(lanes: int, examples: int, given: Sequence[jax.Device] | None = None) -> Devices | None:
    """Returns a mesh of as many devices as divide lanes and examples evenly, or None if that is one device.

    Devices are assigned to lanes first, the remaining ones to examples.

    Args:
        lanes: The number of lanes.
        examples: The number of examples in a batch.
        given: The devices to use. None uses all devices.

    >>> devices(3, 32, jax.devices()[:1]) is None
    True
    """
    given = jax.devices() if given is None else given
    rows = gcd(lanes, len(given))
    columns = gcd(examples, len(given) // rows)
    if rows * columns == 1:
        return None
    return Devices(Mesh(np.array(given[: rows * columns]).reshape(rows, columns), ("lanes", "batch")))
