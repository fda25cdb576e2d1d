"""What a study concludes of its variants: each against the reference, its first, over the seeds that both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnlab.lab.outcome import Outcome, is_planned
from attnlab.lab.quantity import number
from attnlab.lab.statistics import Verdict, verdicts


@dataclass(frozen=True)
class Comparison:
    """The verdicts by variant. Of one that has none `refused` says why; `alone` are seeds that only one side has.

    `margin` is what counts as the same, or None; `planned` whether the folders told which variant is the first;
    `silent` says in a sentence's end why nothing at all is compared, and is empty where something is.
    """

    reference: Outcome
    planned: bool
    margin: float | None
    verdicts: dict[str, Verdict]
    refused: dict[str, str]
    alone: dict[str, tuple[int, ...]]
    silent: str = ""

    def word(self, outcome: Outcome) -> str:
        """better, worse, same, unclear or reference; empty where nothing is said."""
        if outcome.name == self.reference.name:
            return "reference"
        found = self.verdicts.get(outcome.name)
        return found.verdict if found else ""


def comparison(found: Sequence[Outcome]) -> Comparison:
    """Every finished variant against the reference, by the headline metric, corrected for all (Holm, Shaffer's form).

    Seeds are paired; those that one side alone has are left out, and named. One that is not finite takes its variant
    out as a whole.
    """
    reference = min(found, key=lambda outcome: outcome.order)
    margin = number(reference.experiment.get("margin")) or 0.0
    margin = margin if margin > 0 else None
    bare = Comparison(reference, is_planned(reference), margin, {}, {}, {}, _silent(reference, found))
    if bare.silent:
        return bare
    pairs, tried, refused, alone = {}, {}, {}, {}
    for outcome in found:
        if outcome.result is None or outcome.name == reference.name:
            continue
        a, b = outcome.by_seed(_metric(outcome)), reference.by_seed(_metric(reference))
        both = [seed for seed in a if seed in b]
        if len(both) < 2:
            refused[outcome.name] = _refusal(outcome, a, b)
            continue
        alone[outcome.name] = tuple(sorted({*a, *b} - {*both}))
        pairs[outcome.name] = {seed: a[seed] for seed in both}, {seed: b[seed] for seed in both}
        tried[outcome.name] = outcome.tried(), reference.tried()
    higher = bool(reference.result and reference.result["higher"])
    said = verdicts(pairs, margin, higher=higher, tried=tried)
    return replace(bare, verdicts=said, refused=refused, alone=alone)


def _silent(reference: Outcome, found: Sequence[Outcome]) -> str:
    if len({_metric(outcome) for outcome in found if outcome.result is not None}) > 1:
        return "the finished runs name different headline metrics"
    if reference.result is None:
        return "it has not finished"
    if reference.headline is None:
        return "it has no value"
    if not reference.by_seed(_metric(reference)):
        return "not all of its values are finite numbers that belong to a seed"
    return ""


def _refusal(outcome: Outcome, a: dict[int, float], b: dict[int, float]) -> str:
    if outcome.headline is None:
        return "it has no value"
    if not a:
        return "not all of its values are finite numbers that belong to a seed"
    seeds = [", ".join(map(str, sorted(side))) for side in (a, b)]
    if set(a) & set(b) and max(len(a), len(b)) == 1:
        return "one seed shows no spread; a paired difference takes two or more that both were trained with"
    return f"a paired difference takes two seeds or more that both were trained with, not {seeds[0]} and {seeds[1]}"


def _metric(outcome: Outcome) -> str:
    return outcome.result["metric"] if outcome.result else ""
