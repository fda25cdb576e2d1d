"""The roofline model: whether computing or moving data limits an operation (Williams et al. 2009)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from attnlab.analysis.cost import Operation


@dataclass(frozen=True)
class Machine:
    """The peak performance of a machine.

    Raises:
      ValueError: if `flops` or `bandwidth` is not a finite number above 0.
    """

    name: str
    """Name of the machine."""
    flops: float
    """Floating-point operations per second on `dtype`."""
    bandwidth: float
    """Bytes of memory traffic per second."""
    dtype: str = "float32"
    """Dtype to which `flops` applies."""

    def __post_init__(self):
        for name in ("flops", "bandwidth"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name}={getattr(self, name)} must be a finite number above 0")

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in FLOP per byte, from which on computing is the limit."""
        return self.flops / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """Returns the attainable FLOP per second at an arithmetic intensity: min(flops, intensity · bandwidth)."""
        return min(self.flops, intensity * self.bandwidth)

    def share(self, flops: float | None, bytes: float | None, seconds: float | None) -> float | None:
        """Returns the fraction of the attainable FLOP per second that a computation reaches.

        Args:
          flops: its floating-point operations.
          bytes: the bytes that it has to move.
          seconds: the time that it took.

        Returns:
          The fraction, or None if one of the three is not known or is 0.
        """
        if not (flops and bytes and seconds):
            return None
        return flops / seconds / self.attainable(intensity(flops, bytes))

    def side(self, intensity: float) -> str:
        """Returns what limits work of an arithmetic intensity: "compute" from the ridge on, "memory" below it."""
        return "compute" if intensity >= self.ridge else "memory"


# Published peaks. NVIDIA's A100 80 GB and H100 SXM: float32 without tensor cores, and bfloat16 without sparsity.
# Google's TPU v5e: products in bfloat16.
PUBLISHED = (
    Machine("A100", 19.5e12, 2e12),
    Machine("H100", 67e12, 3.35e12),
    Machine("A100", 312e12, 2e12, "bfloat16"),
    Machine("H100", 989e12, 3.35e12, "bfloat16"),
    Machine("TPU v5e", 197e12, 819e9, "bfloat16"),
)


def intensity(flops: float, bytes: float) -> float:
    """Returns the arithmetic intensity in FLOP per byte; infinite if nothing is moved, 0 if there is no work either."""
    return flops / bytes if bytes else math.inf if flops else 0.0


@dataclass(frozen=True)
class Kind:
    """Operations of one kind and size, added up."""

    name: str
    """What they are, in words (see `named`)."""
    count: int
    """How many there are."""
    flops: int
    """Their floating-point operations in total."""
    bytes: int
    """The bytes that they move in total."""

    @property
    def intensity(self) -> float:
        """Arithmetic intensity in FLOP per byte."""
        return intensity(self.flops, self.bytes)


def kinds(operations: Iterable[Operation]) -> list[Kind]:
    """Groups operations by what they are, the most FLOP first.

    Products and convolutions are grouped by their sizes. Reductions, elementwise operations and moves form one group
    each. Operations without FLOP and bytes are left out.
    """
    alike: dict[str, list[Operation]] = {}
    for each in operations:
        if each.flops or each.bytes:
            alike.setdefault(named(each), []).append(each)
    found = [
        Kind(
            name,
            round(sum(each.rounds for each in some)),
            round(sum(each.rounds * each.flops for each in some)),
            round(sum(each.rounds * each.bytes for each in some)),
        )
        for name, some in alike.items()
    ]
    return sorted(found, key=lambda kind: (-kind.flops, -kind.bytes))


def named(operation: Operation) -> str:
    """Returns the name of an operation in a table.

    >>> named(Operation("dot_general", (8, 128, 64, 128), "float32", 0, 0))
    '8 × [128 64] [64 128]'
    """
    if operation.name == "dot_general":
        batch, m, k, n = operation.sizes
        return f"{batch} × [{m} {k}] [{k} {n}]" if batch > 1 else f"[{m} {k}] [{k} {n}]"
    if operation.name == "conv_general_dilated":
        return f"convolution to [{' '.join(map(str, operation.sizes))}]"
    if operation.name.startswith(("reduce_", "cum", "arg")):
        return "sums, maxima"
    return "elementwise" if operation.flops else "moves"
