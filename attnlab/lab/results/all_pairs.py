"""Compare every variant of a study with every other. The verdicts hold for all pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from attnlab.lab.results.outcome import Outcome
from attnlab.lab.statistics import Verdict, Word, verdicts

Pair = tuple[str, str]  # (later, earlier) in the study's order

SIGNS: dict[str, str] = {"better": "+", "worse": "−", "same": "=", "unclear": "?"}
PENDING, REFUSED = "…", "·"
OPPOSITE: dict[Word, Word] = {"better": "worse", "worse": "better", "same": "same", "unclear": "unclear"}


@dataclass(frozen=True)
class AllPairs:
    """The verdicts of all pairs, corrected for all comparisons that the study plans."""

    groups: tuple[tuple[str, ...], ...]
    """The variants that are compared with each other, in the study's order. A group shares one task."""
    verdicts: dict[Pair, Verdict]
    """The verdicts by pair: the later variant compared with the earlier."""
    refused: dict[Pair, str]
    """By pair, why there is no verdict."""
    alone: dict[Pair, tuple[int, ...]]
    """By pair, the seeds that only one side has."""
    pending: tuple[Pair, ...]
    """The pairs with a variant that has not finished."""

    @property
    def comparisons(self) -> int:
        """The number of comparisons that the verdicts are corrected for: all of the study, with or without values."""
        return len(self.verdicts) + len(self.refused) + len(self.pending)

    def word(self, one: str, other: str) -> Word | None:
        """Return the verdict of one variant against another, in either order, or None."""
        if (found := self.verdicts.get((one, other))) is not None:
            return found.verdict
        found = self.verdicts.get((other, one))
        return None if found is None else OPPOSITE[found.verdict]

    def sign(self, one: str, other: str) -> str:
        """Return the verdict as a sign. It is empty for a variant against itself."""
        if (word := self.word(one, other)) is not None:
            return SIGNS[word]
        return "" if one == other else PENDING if {(one, other), (other, one)} & {*self.pending} else REFUSED

    def legend(self) -> str:
        """Explain the signs that occur and the confidence of the verdicts, in one line."""
        words = {SIGNS[word]: word for word in SIGNS}
        shown = {self.sign(a, b) for names in self.groups for a in names for b in names}
        meanings = words | {PENDING: "not finished", REFUSED: "not compared"}
        signs = ", ".join(f"{sign} {word}" for sign, word in meanings.items() if sign in shown)
        many = self.comparisons > 1
        hold = f"the {self.comparisons} verdicts hold jointly" if many else "the verdict holds"
        return f"row compared with column: {signs}; {hold} with 95% confidence"


def all_pairs(
    ordered: Sequence[Outcome],
    task_of: Mapping[str, str],
    margin: float | None,
    refusal: Callable[[Outcome, Outcome], str],
) -> AllPairs:
    """Compare every finished variant with every other of the same task by the primary metric.

    Args:
        ordered: The variants in the study's order.
        task_of: A key of the task of each variant, by name.
        margin: The largest difference that counts as the same, or None.
        refusal: Returns why two variants are not compared, or "".
    """
    found: dict[str, list[Outcome]] = {}
    for outcome in ordered:
        found.setdefault(task_of[outcome.name], []).append(outcome)
    both = [(later, earlier) for group in found.values() for earlier, later in combinations(group, 2)]
    values, tried, higher, metric_steps, kinds = {}, {}, {}, {}, {}
    refused, alone, pending = {}, {}, []
    for later, earlier in both:
        pair = later.name, earlier.name
        if later.result is None or earlier.result is None:
            pending.append(pair)
        elif why := refusal(later, earlier):
            refused[pair] = why
        else:
            a, b = later.by_seed(later.metric), earlier.by_seed(earlier.metric)
            values[pair] = tuple({seed: one[seed] for seed in a if seed in b} for one in (a, b))
            tried[pair] = later.tried_rates(), earlier.tried_rates()
            higher[pair], metric_steps[pair] = later.primary_metric.higher, later.metric_resolution()
            alone[pair] = tuple(sorted({*a} ^ {*b}))
            kinds[pair] = task_of[later.name]
    missing = len(pending) + len(refused)
    judged = verdicts(
        values, margin, higher=higher, tried=tried, metric_steps=metric_steps, task_of=kinds, missing=missing
    )
    groups = tuple(tuple(one.name for one in group) for group in found.values() if len(group) > 1)
    return AllPairs(groups, judged, refused, alone, tuple(pending))
