"""Run the bench: measure every mechanism at every length, compared with its peers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from attnlab.analysis.growth import Growth, growth
from attnlab.analysis.measure import Program, Quartiles, quartiles, timed, times_faster
from attnlab.analysis.roofline import Machine, intensity
from attnlab.bench import peers
from attnlab.bench.calls import PASSES, inputs, prepare, target
from attnlab.documented import Documented
from attnlab.mechanisms.base import Mechanism
from attnlab.system.environment import environment

OURS = ""  # the key of the mechanism itself among its peers


@dataclass(frozen=True)
class BenchConfig(metaclass=Documented):
    """What to measure."""

    mechanisms: Mapping[str, Mechanism]
    """The mechanisms by name."""
    lengths: Sequence[int] = (512, 1024, 2048, 4096)
    """The sequence lengths, in tokens."""
    heads: int = 8
    """The number of heads."""
    width: int = 64
    """The width of a head."""
    masks: Sequence[str] = ("full", "causal")
    """The masks: "full", "causal" or both."""
    passes: Sequence[str] = PASSES
    """The passes: "forward", "forward+backward" or both."""
    repeat: int = 7
    """How often each program is timed."""
    peers: bool = False
    """Whether to measure peers too."""


@dataclass(frozen=True)
class PeerTiming:
    """A peer, measured alternately with our mechanism."""

    seconds: tuple[float, ...]
    """The seconds of each turn."""
    times: Quartiles
    """How many times longer the peer took than our mechanism."""
    difference: float
    """The relative difference of the outputs, max |a − b| / max |a|."""
    memory: int | None
    """The memory of the peer in bytes, or None if unknown."""


@dataclass(frozen=True)
class Measured:
    """A mechanism measured at one length."""

    name: str
    """The name of the mechanism."""
    mask: str
    """The mask, "full" or "causal"."""
    which: str
    """The pass, "forward" or "forward+backward"."""
    T: int
    """The sequence length."""
    seconds: tuple[float, ...] = ()
    """The seconds of each turn."""
    compile_seconds: float | None = None
    """The seconds that compiling took."""
    memory: int | None = None
    """The bytes of temporaries and outputs, as the compiler estimates them."""
    moved: int | None = None
    """The bytes of arguments and outputs."""
    flops: int | None = None
    """The floating-point operations."""
    peers: dict[str, PeerTiming] = field(default_factory=dict)
    """The measured peers by name."""
    why_not: str = ""
    """Why nothing was measured, or ""."""

    @property
    def median(self) -> float | None:
        """The median of the seconds."""
        return quartiles(self.seconds).median if self.seconds else None

    @property
    def rate(self) -> float | None:
        """The achieved FLOP per second."""
        return self.flops / self.median if self.median and self.flops else None

    @property
    def intensity(self) -> float | None:
        """The arithmetic intensity: FLOPs per byte of the arguments and outputs, which every implementation moves."""
        return intensity(self.flops, self.moved) if self.flops and self.moved else None

    def share(self, machine: Machine) -> float | None:
        """Return the fraction of the machine's attainable FLOP per second that was reached."""
        return machine.share(self.flops, self.moved, self.median)


def bench(plan: BenchConfig, note: Callable[[str], None] = lambda text: None) -> Iterator[Measured]:
    """Measure every combination of the plan, and yield each result as soon as it is known.

    Args:
        plan: What to measure.
        note: Is called with a line about each mechanism under each mask.
    """
    rows = [(name, mask, which) for name in plan.mechanisms for mask in plan.masks for which in plan.passes]
    for n, (name, mask, which) in enumerate(rows):
        found = []
        for T in plan.lengths:
            found.append(measured(plan, name, mask, which, T))
            yield found[-1]
            if found[-1].why_not:
                break  # a longer sequence would be refused or be too large as well
        results = ", ".join(f"T={each.T} {_in_words(each)}" for each in found)
        note(f"{name}, {mask}, {which}: {results} ({n + 1} of {len(rows)})")


def measured(plan: BenchConfig, name: str, mask: str, which: str, T: int) -> Measured:
    """Measure one mechanism and its peers in turns, at one length.

    Args:
        plan: The configuration of the benchmark.
        name: The name of the mechanism in `plan`.
        mask: "full" or "causal".
        which: What is measured: the forward pass alone or with gradients.
        T: The length of the sequence, in tokens.

    Returns:
        The measurement. If the mechanism refuses the mask or does not fit into memory, it says so and has no times.
    """
    mechanism = plan.mechanisms[name]
    ours = prepare(mechanism, mask, which, T, plan.heads, plan.width)
    if ours is None:
        return Measured(name, mask, which, T, why_not="does not support this mask")
    if ours.memory is not None and ours.memory > (room := _room()):
        return Measured(
            name,
            mask,
            which,
            T,
            why_not=f"needs {ours.memory / 1e9:.1f} GB, more than the limit of {room / 1e9:.1f} GB",
        )
    others = peers.available_peers(mechanism, mask) if plan.peers else {}
    drawn = inputs(mechanism.with_length(T), T, plan.heads, plan.width)
    call = peers.PeerCall(mechanism, drawn, target(T, plan.heads, plan.width), mask, which)
    programs = {OURS: ours} | {peer: each.prepare(call) for peer, each in others.items()}
    seconds = timed(programs, plan.repeat)
    timings = {
        peer: PeerTiming(
            tuple(seconds[peer]),
            times_faster(seconds[OURS], seconds[peer]),
            _difference(ours, programs[peer]),
            programs[peer].memory,
        )
        for peer in others
    }
    return Measured(
        name, mask, which, T, tuple(seconds[OURS]), ours.compile_seconds, ours.memory, ours.moved, ours.flops, timings
    )


def growths(found: Sequence[Measured]) -> dict[tuple[str, str, str], dict[str, Growth | None]]:
    """Fit how seconds and memory grow with T, for the mechanism and each peer, by (mechanism, mask, pass)."""
    rows: dict[tuple[str, str, str], list[Measured]] = {}
    for each in found:
        rows.setdefault((each.name, each.mask, each.which), []).append(each)
    return {row: _growths(cells) for row, cells in rows.items()}


def _growths(cells: Sequence[Measured]) -> dict[str, Growth | None]:
    """Fit the growth for the measurements of one mechanism, mask and pass."""
    fits = {
        "seconds": growth({each.T: each.seconds for each in cells}),
        "memory": growth({each.T: [each.memory] for each in cells if each.memory}),
    }
    for peer in {peer for each in cells for peer in each.peers}:
        fits[f"seconds of {peer}"] = growth({each.T: each.peers[peer].seconds for each in cells if peer in each.peers})
    return fits


def record(plan: BenchConfig, found: Sequence[Measured], machine: Machine) -> dict[str, object]:
    """Return everything for JSON: the machine, the plan, every measurement, and the growths.

    Args:
        plan: The configuration of the benchmark.
        found: The measurements.
        machine: The speed of this machine.

    Returns:
        A dict that is serialisable as JSON.
    """
    installed = {name: peer.version for name, peer in peers.PEERS.items() if peer.here} if plan.peers else {}
    settings = {name: value for name, value in vars(plan).items() if name != "mechanisms"}
    return {
        "machine": environment() | {"processor": processor()} | asdict(machine) | {"ridge": machine.ridge},
        "peers": installed,
        "plan": settings | {"mechanisms": {name: repr(value) for name, value in plan.mechanisms.items()}},
        "memory": "temporaries and outputs, as the compiler estimates them",
        "moved": "arguments and outputs",
        "measured": [asdict(each) | {"median": each.median, "rate": each.rate} for each in found],
        "growth": [
            {"name": name, "mask": mask, "pass": which} | {what: fit and asdict(fit) for what, fit in fits.items()}
            for (name, mask, which), fits in growths(found).items()
        ],
    }


def processor() -> str:
    """Return the name of the processor, or "unknown"."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else "unknown"


def _difference(ours: Program, theirs: Program) -> float:
    """Return the relative difference of the outputs, max |a − b| / max |a|."""
    a, b = ours.answer(), theirs.answer()
    a = a[0] if isinstance(a, tuple) else a
    return float(np.max(np.abs(a - b)) / np.max(np.abs(a)))


def _room() -> float:
    """Return the bytes that one call may take: half of the memory on a CPU, unlimited on an accelerator."""
    import jax

    if jax.devices()[0].platform != "cpu" or sys.platform == "win32":
        return float("inf")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2


def _in_words(each: Measured) -> str:
    return each.why_not or f"{1000 * (each.median or 0):.3g} ms"
