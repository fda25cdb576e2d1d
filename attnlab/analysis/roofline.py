"""The roofline: whether an operation is bound by what a machine computes or by what it moves (Williams et al. 2009)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from attnlab.analysis.cost import Operation


@dataclass(frozen=True)
class Machine:
    """What a machine does at best: `flops` floating-point operations on a dtype and `bandwidth` bytes a second."""

    name: str
    flops: float
    bandwidth: float
    dtype: str = "float32"

    def __post_init__(self):
        for name in ("flops", "bandwidth"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name}={getattr(self, name)} must be a finite number above 0")

    @property
    def ridge(self) -> float:
        """The intensity, in FLOP a byte, from which on computing is the limit."""
        return self.flops / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """The most FLOP a second at that intensity: min(flops, intensity · bandwidth)."""
        return min(self.flops, intensity * self.bandwidth)

    def side(self, intensity: float) -> str:
        """What bounds work of that intensity: "compute" from the ridge on, "memory" below it."""
        return "compute" if intensity >= self.ridge else "memory"


# Published peaks, as collections of them list: NVIDIA's A100 80 GB and H100 SXM, float32 without tensor cores and
# bfloat16 without sparsity; Google's TPU v5e, whose products are in bfloat16.
PUBLISHED = (
    Machine("A100", 19.5e12, 2e12),
    Machine("H100", 67e12, 3.35e12),
    Machine("A100", 312e12, 2e12, "bfloat16"),
    Machine("H100", 989e12, 3.35e12, "bfloat16"),
    Machine("TPU v5e", 197e12, 819e9, "bfloat16"),
)


def intensity(flops: float, bytes: float) -> float:
    """FLOP for each byte moved; infinite where nothing moves."""
    return flops / bytes if bytes else math.inf if flops else 0.0


@dataclass(frozen=True)
class Kind:
    """Operations of one kind and size, put together: in words, how many, and what they cost in all."""

    name: str
    count: int
    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """FLOP for each byte."""
        return intensity(self.flops, self.bytes)


def kinds(operations: Iterable[Operation]) -> list[Kind]:
    """Operations put together by what they are, the costliest in FLOP first.

    Products and convolutions stand by their sizes; sums, elementwise operations and plain moves each as one.
    Operations that cost nothing are left out.
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
    """What an operation is called in a table.

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
