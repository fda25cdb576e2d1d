"""Parity: compare the forms of every mechanism in float64, and measure the error of every precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

import jax

from attnlab.analysis.forms import Found, agreement
from attnlab.analysis.rounding import DTYPES, errors
from attnlab.console.format import listing
from attnlab.mechanisms.base import Mechanism
from attnlab.system.environment import environment

# The largest allowed |a − b| between forms in float64, and max |y − ŷ| / max |ŷ| in each precision.
LIMITS = {"forms": 1e-10, "float32": 5e-6, "bfloat16": 1.5e-2, "float16": 2e-3}
LENGTHS = (64, 256, 1024, 4096)
STEADY, LOOSE = 256, 0.1  # beyond this many tokens, the limit for mechanisms that declare themselves ill-conditioned
PRIME = 131

Value = TypeVar("Value")


@dataclass(frozen=True)
class ExceededLimit:
    """A number beyond its limit."""

    what: str
    """What was compared."""
    where: str
    """The case in which it was compared."""
    value: float
    """The number."""
    limit: float
    """The limit."""

    def __str__(self) -> str:
        return f"{self.what} ({self.where}) {self.value:.1e}, limit {self.limit:.1e}"


@dataclass(frozen=True)
class ParityResult:
    """The parity of one mechanism."""

    name: str
    """The name of the mechanism."""
    forms: dict[str, Found] = field(default_factory=dict)
    """The largest differences between its forms, by kind."""
    errors: dict[str, dict[int, Found]] = field(default_factory=dict)
    """The errors of each precision, by dtype and length."""
    seconds: float = 0.0
    """The time that the comparison took."""
    exception: str = ""
    """The exception that stopped it, or ""."""
    ill_conditioned: str = ""
    """Why its errors beyond 256 tokens have a limit of only 0.1, or ""."""

    def loose(self, T: int) -> bool:
        """Return whether errors at length T have a limit of only 0.1."""
        return bool(self.ill_conditioned) and T > STEADY

    @property
    def exceeded_limits(self) -> list[ExceededLimit]:
        """The numbers that exceed their limit or are NaN."""
        found = [(kind, LIMITS["forms"], compared) for kind, compared in self.forms.items()]
        for dtype, lengths in self.errors.items():
            limits = {T: LOOSE if self.loose(T) else LIMITS[dtype] for T in lengths}
            found += [(f"{dtype} at T={T}", limits[T], compared) for T, compared in lengths.items()]
        return [
            ExceededLimit(what, where, value, limit)
            for what, limit, compared in found
            for where, value in compared.items()
            if value is not None and not value <= limit  # also true for NaN
        ]

    @property
    def failure(self) -> str:
        """Why the mechanism fails, in a line, or ""."""
        if self.exception:
            return f"{self.name}: {self.exception}"
        if exceeded_limits := self.exceeded_limits:
            return f"{self.name}: {listing([str(each) for each in exceeded_limits], most=1)}"
        nothing = [what for what, numbers in self.compared.items() if all(value is None for value in numbers)]
        return f"{self.name}: nothing to compare: {', '.join(nothing)}" if nothing else ""

    @property
    def compared(self) -> dict[str, list[float | None]]:
        """All numbers, of the forms and of each precision."""
        forms = [value for found in self.forms.values() for value in found.values()]
        by_dtype = {d: [x for found in lengths.values() for x in found.values()] for d, lengths in self.errors.items()}
        return {"forms": forms} | by_dtype


def lengths_to(longest: int) -> tuple[int, ...]:
    """Return the lengths at which errors are measured: 64, 256, and so on by factors of four, and `longest` itself."""
    steps = (LENGTHS[0] * 4**n for n in range(16))
    return (*(T for T in steps if longest > T), longest)


def parity(
    mechanisms: Mapping[str, Mechanism],
    lengths: Sequence[int] = LENGTHS,
    note: Callable[[str], None] = lambda text: None,
) -> Iterator[ParityResult]:
    """Compare the mechanisms one at a time, and leave the settings of jax unchanged.

    One at a time saves memory: at T = 4,096 one map in float64 takes 134 MB.

    Args:
        mechanisms: The mechanisms by name.
        lengths: The lengths at which errors are measured.
        note: Is called with a line about each result.

    Yields:
        The result of each mechanism as soon as it is known.
    """
    for n, (name, mechanism) in enumerate(mechanisms.items()):
        found = check_mechanism(name, mechanism, lengths)
        place = f"{n + 1} of {len(mechanisms)}, {found.seconds:.1f} s"
        note(f"{found.failure or f'{name}: ok'} ({place})")
        yield found


def check_mechanism(name: str, mechanism: Mechanism, lengths: Sequence[int] = LENGTHS) -> ParityResult:
    """Compare one mechanism. An exception, other than a refusal, becomes the result's `exception`.

    Args:
        name: The name of the mechanism.
        mechanism: The mechanism.
        lengths: The lengths of the sequences at which the error of each precision is measured.
    """
    begun = monotonic()
    # Most of the time is spent compiling, which releases the GIL, so two threads are faster.
    with ThreadPoolExecutor(2) as pool:
        forms = pool.submit(_exactly, agreement, mechanism, PRIME)
        rounded = pool.submit(lambda: {T: _exactly(errors, mechanism, T) for T in lengths})
    exception = next((error for each in (forms, rounded) if (error := each.exception())), None)
    if exception is not None:
        return ParityResult(
            name,
            seconds=monotonic() - begun,
            exception=_line(exception),
            ill_conditioned=mechanism.traits.ill_conditioned,
        )
    by_dtype = {dtype: {T: found[dtype] for T, found in rounded.result().items()} for dtype in DTYPES}
    return ParityResult(
        name, forms.result(), by_dtype, monotonic() - begun, ill_conditioned=mechanism.traits.ill_conditioned
    )


def _exactly(measure: Callable[..., Value], *arguments: Mechanism | int) -> Value:
    # By default, accelerators compute float32 products with fewer digits.
    with jax.default_matmul_precision("float32"):
        return measure(*arguments)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def record(results: Sequence[ParityResult], lengths: Sequence[int]) -> dict[str, object]:
    """Return everything for JSON: the machine, the limits, every number, and what fails."""
    return {
        "machine": environment() | {"matmul_precision": "float32"},
        "limits": LIMITS,
        "forms_length": PRIME,
        "lengths": list(lengths),
        "mechanisms": {
            each.name: {
                "forms": each.forms,
                "errors": each.errors,
                "seconds": round(each.seconds, 2),
                "failure": each.failure or None,
                "ill_conditioned": each.ill_conditioned or None,
                "exceeded_limits": [vars(each) for each in each.exceeded_limits],
            }
            for each in results
        },
        "passed": not any(each.failure for each in results),
    }


def verdict(results: Sequence[ParityResult]) -> str:
    """Return one line that names the mechanisms that exceed a limit, or ""."""
    failures = [each.failure for each in results if each.failure]
    return f"{len(failures)} of {len(results)} mechanisms exceed a limit: {'; '.join(failures)}" if failures else ""
