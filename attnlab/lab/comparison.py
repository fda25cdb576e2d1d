"""What a study concludes of its variants: each against the first that was asked the same, over the seeds of both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnlab.lab.allpairs import AllPairs, all_pairs
from attnlab.lab.outcome import Outcome, is_planned
from attnlab.lab.quantity import is_open, is_rate, measure, number
from attnlab.lab.statistics import Verdict, verdicts


@dataclass(frozen=True)
class Comparison:
    """The verdicts by variant. Of one that has none `refused` says why; `alone` are seeds that only one side has.

    `references` holds for each variant the one it is compared with: the one that the study names for it (`named`: it
    names some), else the first of those that were asked the same, which for most studies is its first. `margin` is what
    counts as the same, or None; `planned` whether the folders told which variant is the first; `silent` says in a
    sentence's end why nothing at all is compared, and is empty where something is. `pending` are the variants that
    are still to be compared: they or their references have not finished. The verdicts are corrected for them too. Where
    the study compares every variant with every other, `pairs` has all of that, and the verdicts are those of `pairs`.
    """

    references: dict[str, Outcome]
    planned: bool
    margin: float | None
    verdicts: dict[str, Verdict]
    refused: dict[str, str]
    alone: dict[str, tuple[int, ...]]
    named: bool = False
    silent: str = ""
    pending: tuple[str, ...] = ()
    pairs: AllPairs | None = None

    @property
    def planned_count(self) -> tuple[int, int]:
        """How many comparisons the verdicts are corrected for, and how many of them are not finished."""
        planned = self if self.pairs is None else self.pairs
        return len(planned.verdicts) + len(planned.pending), len(planned.pending)

    @property
    def leaders(self) -> list[Outcome]:
        """The references that others are held against, in the study's order; the study's first at least."""
        leaders = list({id(one): one for one in self.references.values()}.values())
        return [one for one in leaders if self.members(one)] or leaders[:1]

    def members(self, reference: Outcome) -> list[str]:
        """The variants that are compared with a reference."""
        return [name for name, one in self.references.items() if one is reference and name != one.name]

    def word(self, outcome: Outcome) -> str:
        """better, worse, same, unclear or reference; empty where nothing is said."""
        if (found := self.verdicts.get(outcome.name)) is not None:
            return found.verdict
        leads = self.verdicts and any(outcome.name == one.name for one in self.leaders)
        return "reference" if leads and self.references[outcome.name] is outcome else ""


def comparison(found: Sequence[Outcome]) -> Comparison:
    """Every finished variant against its reference, by the headline metric, corrected for all (Holm, Shaffer's form).

    All that the study plans count, also those that have not finished: a verdict does not change because they do.
    Only what was asked the same is compared: variants of one task, which may differ in what the task calls teaching.
    Seeds are paired; those that one side alone has are left out, and named. One that is not finite takes its variant
    out as a whole.
    """
    ordered = sorted(found, key=lambda outcome: outcome.order)
    first = ordered[0]
    margin = number(first.experiment.get("margin")) or 0.0
    margin = margin if margin > 0 else None
    # What does not tell its task is taken to be of the first.
    asked = {outcome.name: _asked(outcome) or _asked(ordered[0]) for outcome in ordered}
    references, named = _references(ordered, asked)
    by_name = {outcome.name: outcome for outcome in ordered}
    bare = Comparison(references, is_planned(first), margin, {}, {}, {}, named)
    silent = {
        name: _silent(leader, [leader, *(outcome for outcome in found if outcome.name in bare.members(leader))])
        for name, leader in {one.name: one for one in references.values()}.items()
    }
    if any(outcome.experiment.get("all_pairs") is True for outcome in ordered):
        bare = replace(bare, pairs=all_pairs(ordered, asked, margin, _refused))
    if all(silent[leader.name] for leader in bare.leaders):
        return replace(bare, silent=silent[bare.leaders[0].name])
    pairs, tried, higher, steps, refused, alone = {}, {}, {}, {}, {}, {}
    for outcome in found:
        reference = references[outcome.name]
        if outcome.result is None or outcome is reference:
            continue
        a, b = outcome.by_seed(outcome.metric), reference.by_seed(reference.metric)
        both = [seed for seed in a if seed in b]
        if why := silent[reference.name] or _unpaired(outcome, a, b):
            refused[outcome.name] = why
            continue
        alone[outcome.name] = tuple(sorted({*a, *b} - {*both}))
        pairs[outcome.name] = {seed: a[seed] for seed in both}, {seed: b[seed] for seed in both}
        tried[outcome.name] = outcome.tried(), reference.tried()
        higher[outcome.name] = bool(outcome.result["higher"])
        steps[outcome.name] = outcome.step()
    pending = tuple(
        name
        for name, reference in references.items()
        if name != reference.name and (by_name[name].result is None or reference.result is None)
    )
    if bare.pairs is not None:
        said = {name: bare.pairs.verdicts[name, references[name].name] for name in pairs}
        return replace(bare, verdicts=said, refused=refused, alone=alone, pending=pending)
    said = verdicts(pairs, margin, higher=higher, tried=tried, steps=steps, asked=asked, pending=len(pending))
    return replace(bare, verdicts=said, refused=refused, alone=alone, pending=pending)


def _references(ordered: Sequence[Outcome], asked: dict[str, str]) -> tuple[dict[str, Outcome], bool]:
    """What each is compared with, and whether the study names any of them."""
    names = {
        outcome.name: against for outcome in ordered if isinstance(against := outcome.experiment.get("against"), str)
    }
    by_name = {outcome.name: outcome for outcome in ordered}
    leaders: dict[str, Outcome] = {}
    references = {}
    for outcome in ordered:
        name, other = outcome.name, names.get(outcome.name)
        if other is not None:
            # What it is to be compared with may be missing, and then nothing else will do.
            references[name] = by_name[other] if asked.get(other) == asked[name] else outcome
        else:
            references[name] = leaders.setdefault(asked[name], outcome)
    return references, bool(names)


def _asked(outcome: Outcome) -> str:
    """What it was asked, to be compared with others; of older folders the name of the task."""
    experiment = outcome.experiment.get("experiment")
    task = experiment.get("task") if isinstance(experiment, dict) else None
    asked = outcome.experiment.get("asked") or (task.get("name") if isinstance(task, dict) else None)
    # A glimpse is asked less.
    return json.dumps([asked, bool(outcome.experiment.get("quick"))], sort_keys=True) if asked else ""


def _refused(outcome: Outcome, other: Outcome) -> str:
    """Why two finished variants are not compared; else ""."""
    a, b = outcome.by_seed(outcome.metric), other.by_seed(other.metric)
    return _silent(other, [other, outcome]) or _unpaired(outcome, a, b)


def _unpaired(outcome: Outcome, a: dict[int, float], b: dict[int, float]) -> str:
    """Why the values of two variants by seed make no comparison; else ""."""
    if len({*a} & {*b}) < 2:
        return _refusal(outcome, a, b)
    return _worst(outcome, [*a.values(), *b.values()])


def _silent(reference: Outcome, found: Sequence[Outcome]) -> str:
    if len({outcome.metric for outcome in found if outcome.result is not None}) > 1:
        return "the finished runs name different headline metrics"
    if reference.result is None:
        return "it has not finished"
    if reference.headline is None:
        return "it has no value"
    if not reference.by_seed(reference.metric):
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


def _worst(outcome: Outcome, values: Sequence[float]) -> str:
    """Why two variants are not compared where every value of both is the worst a rate can have; else ""."""
    higher = bool((outcome.result or {}).get("higher"))
    if not is_rate(outcome.metric) or (not higher and is_open(outcome.metric)):
        return ""
    worst = 0.0 if higher else 1.0
    if any(value != worst for value in values):
        return ""
    return f"every seed of both has {measure(outcome.metric, worst)}, the worst there is, and that shows no likeness"
