"""Comparisons with other libraries: outputs and gradients of the same function on the same arrays.

A peer is never a dependency. It is imported when it is compared, and its absence is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

import jax
import numpy as np

from attnlab.bench.installed import installed_version
from attnlab.bench.peer_parity.evaluation import Arrays, evaluate_in_jax

FORMS = ("whole", "extreme", "packed", "padded", "steps")
"""Ways to compute: a sequence, one with extreme gates, several in one row, with padding, and token by token."""
LIMITS = {"float32": 1e-5, "float64": 1e-10}
"""The largest allowed max |a − b| / max |b| of an output or a gradient, by the dtype that the peer computes in."""
OUTPUT = "output"


class Subject(Protocol):
    """Something of ours that other libraries compute too, as a function of named arrays.

    Names of arrays that are not floating-point numbers: `segment` [B T] holds the segment ids of packed rows, and
    `keep` [B T] is False for padding.
    """

    @property
    def name(self) -> str:
        """The name in our lists, for example that of a mechanism."""
        ...

    def forms(self) -> Mapping[str, Callable]:
        """Return functions in jax from named arrays to the outputs [B T …], by form."""
        ...

    def inputs(self, form: str) -> Arrays:
        """Return random inputs in float64, by name."""
        ...


class Evaluate(Protocol):
    """Evaluates a function of named arrays in the library that it is written for."""

    def __call__(self, run: Callable, arrays: Arrays, target: np.ndarray | None) -> tuple[np.ndarray, Arrays]:
        """Return the outputs, and the gradient of Σ target · output with respect to each floating-point array."""
        ...


@dataclass(frozen=True)
class KnownDifference:
    """A known difference in one form."""

    text: str
    """Who is wrong, why, and for which input."""
    size: float
    """The largest error that it explains."""


DIGITS = KnownDifference(
    "differences of float32 sums of log gates lose digits after shut gates; "
    "log gates −1000 and −0.1 and all else 1: the second output is wrong by 1e-5",
    1e-2,
)
"""Found in most chunked forms. The token-by-token forms of the same packages do not have it."""


@dataclass(frozen=True)
class PeerFunction:
    """A function of another library that computes what something of ours computes."""

    ours: Subject
    """What it is compared with."""
    package: str
    """The package that contains it, as pip names it."""
    function: str
    """Its name there."""
    forms: Callable[[], Mapping[str, Callable]]
    """Imports it, and returns functions of named arrays in its library, by form. Forms that it lacks are left out."""
    evaluate: Evaluate
    """How such a function is evaluated."""
    dtype: str = "float32"
    """The dtype that it computes in: "float32" or "float64"."""
    known_differences: Mapping[str, KnownDifference] = field(default_factory=dict)
    """Known differences, by form."""

    @property
    def version(self) -> str | None:
        """The installed version of the package, or None."""
        return installed_version(self.package)

    @property
    def limit(self) -> float:
        """The largest allowed error."""
        return LIMITS[self.dtype]


@dataclass(frozen=True)
class PeerResult:
    """The comparison with one function of another library."""

    peer: PeerFunction
    """The function."""
    errors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """max |a − b| / max |b| by form, of the output and of the gradient of each input."""
    exception: str = ""
    """The exception that stopped the comparison, or ""."""
    seconds: float = 0.0
    """The time that it took."""

    def worst(self, form: str) -> tuple[str, float] | None:
        """Return what differs most in a form, and its error, or None if the peer lacks the form."""
        found = self.errors.get(form)
        return max(found.items(), key=lambda each: _size(each[1])) if found else None

    @property
    def exceeded(self) -> list[str]:
        """The forms with an error that exceeds the limit or is NaN."""
        worst = ((form, self.worst(form)) for form in FORMS)
        return [form for form, found in worst if found is not None and not found[1] <= self.peer.limit]

    @property
    def failure(self) -> str:
        """Why the comparison fails, in a line, or "". Known differences do not count."""
        here = f"{self.peer.ours.name} and {self.peer.package} {self.peer.function}"
        if self.exception:
            return f"{here}: {self.exception}"
        for form in self.exceeded:
            what, value = self.worst(form) or ("", 0.0)
            known = self.peer.known_differences.get(form)
            if known is None or not value <= known.size:
                explained = "" if known is None else f", of which {known.size:.0e} are explained"
                return f"{here}: {form}, {_of(what)} {value:.1e}, limit {self.peer.limit:.0e}{explained}"
        return "" if self.errors else f"{here}: nothing to compare"

    @property
    def verdict(self) -> str:
        """ "ok", "✗", "known" for known differences only, or "not reproduced" if a known one was not found."""
        if self.failure:
            return "✗"
        if set(self.peer.known_differences) - set(self.exceeded):
            return "not reproduced"
        return "known" if self.peer.known_differences else "ok"


def compare(peers: Sequence[PeerFunction], note: Callable[[str], None] = lambda text: None) -> Iterator[PeerResult]:
    """Compare with functions of installed packages, one at a time.

    Args:
        peers: The functions.
        note: Is called with a line about each result.

    Yields:
        Each result as soon as it is known. An exception becomes its `exception`.
    """
    known: dict[tuple[int, str, str], Expected] = {}
    for n, peer in enumerate(peers):
        begun = monotonic()
        try:
            result = PeerResult(peer, dict(_errors(peer, known)), seconds=monotonic() - begun)
        except Exception as error:
            line = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
            result = PeerResult(peer, exception=line, seconds=monotonic() - begun)
        place = f"{n + 1} of {len(peers)}, {result.seconds:.1f} s"
        note(f"{result.failure or f'{peer.ours.name} and {peer.function}: {result.verdict}'} ({place})")
        yield result


@dataclass(frozen=True)
class Expected:
    """Our results for one form, in float64 from inputs that are rounded to the peer's dtype."""

    arrays: Arrays
    """The rounded inputs."""
    target: np.ndarray | None
    """The cotangent of the outputs, or None for the form "steps", which has no gradients."""
    kept: np.ndarray
    """Which rows of the output are compared [B T]. What stands in a row of padding is not specified."""
    output: np.ndarray
    """The outputs [B T …]."""
    gradients: Arrays
    """The gradients by name."""


def expected(ours: Subject, run: Callable, form: str, dtype: str) -> Expected:
    """Compute our results for one form, by our function for it.

    Args:
        ours: What is compared, which draws the inputs.
        run: Our function in jax for the form, from named arrays to outputs [B T …].
        form: The form, one of `FORMS`.
        dtype: The dtype that the inputs are rounded to: "float32" or "float64".
    """
    cast = lambda arrays, to: {name: x.astype(to) if x.dtype.kind == "f" else x for name, x in arrays.items()}
    arrays = cast(ours.inputs(form), dtype)
    exact = cast(arrays, np.float64)
    with jax.enable_x64(True):
        shape = jax.eval_shape(run, exact).shape
    kept = arrays.get("keep", np.ones(shape[:2], bool))
    target = None
    if form != "steps":
        target = np.random.default_rng(1).standard_normal(shape).astype(dtype)
        target *= kept.reshape(*kept.shape, *[1] * (len(shape) - 2))
    wide = None if target is None else target.astype(np.float64)
    return Expected(arrays, target, kept, *evaluate_in_jax(run, exact, wide))


def _errors(peer: PeerFunction, known: dict[tuple[int, str, str], Expected]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the errors of each form that both have. Keep our results in `known`, which most peers share."""
    theirs, runs = peer.forms(), peer.ours.forms()
    if "extreme" in runs and "whole" in theirs:
        theirs = {**theirs, "extreme": theirs["whole"]}  # only the inputs differ
    for form in FORMS:
        if form not in theirs or form not in runs:
            continue
        key = id(peer.ours), form, peer.dtype
        if key not in known:
            known[key] = expected(peer.ours, runs[form], form, peer.dtype)
        ours = known[key]
        y, gradients = peer.evaluate(theirs[form], ours.arrays, ours.target)
        found = {name: difference(gradients[name], gradient) for name, gradient in ours.gradients.items()}
        yield form, {OUTPUT: difference(y[ours.kept], ours.output[ours.kept])} | found


def difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Return max |a − b| / max |b|; NaN if either contains NaN.

    Raises:
        ValueError: The shapes differ.
    """
    if theirs.shape != ours.shape:
        raise ValueError(f"the shapes differ: theirs {theirs.shape}, ours {ours.shape}")
    largest = np.max(np.abs(ours), initial=0.0)
    return float(np.max(np.abs(theirs.astype(np.float64) - ours), initial=0.0) / (largest or 1.0))


def _size(error: float) -> float:
    """Return a key to sort by that puts NaN last."""
    return float("inf") if error != error else error


def _of(what: str) -> str:
    """Return what an error is that of, in words."""
    return what if what == OUTPUT else f"gradient of {what}"
