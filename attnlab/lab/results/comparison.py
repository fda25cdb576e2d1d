"""Compare the variants of a study, each with its reference, over the seeds that both have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnlab.console.format import number
from attnlab.lab.results.all_pairs import AllPairs, all_pairs
from attnlab.lab.results.outcome import Outcome, is_planned
from attnlab.lab.statistics import Verdict, verdicts


@dataclass(frozen=True)
class Comparison:
    """The verdicts of a study."""

    references: dict[str, Outcome]
    """For each variant, the one it is compared with.

    That is the variant that the study names for it. Otherwise it is the first of those with the same task, which for
    most studies is the first variant of all.
    """
    planned: bool
    """Whether the folders record which variant is the first."""
    margin: float | None
    """The largest difference that counts as the same, or None."""
    verdicts: dict[str, Verdict]
    """The verdicts by variant."""
    refused: dict[str, str]
    """By finished variant, why it has no verdict. The verdicts of others are corrected for it too."""
    alone: dict[str, tuple[int, ...]]
    """By variant, the seeds that only it or only its reference has."""
    named: bool = False
    """Whether the study names references."""
    silent: str = ""
    """Why nothing is compared at all, as the end of a sentence. It is empty if something is compared."""
    pending: tuple[str, ...] = ()
    """The variants that are not compared yet, because they or their references have not finished.

    The verdicts are corrected for them too.
    """
    pairs: AllPairs | None = None
    """All pairs, if the study compares every variant with every other. The verdicts are then those of `pairs`."""

    @property
    def comparisons(self) -> int:
        """The number of comparisons that the verdicts are corrected for: all of the study, with or without values."""
        if self.pairs is not None:
            return self.pairs.comparisons
        return len({*self.verdicts, *self.refused, *self.pending})

    @property
    def unfinished(self) -> int:
        """The number of planned comparisons whose runs have not finished."""
        return len(self.pending if self.pairs is None else self.pairs.pending)

    @property
    def leaders(self) -> list[Outcome]:
        """The references that others are compared with, in the study's order. At least the study's first variant."""
        leaders = list({id(one): one for one in self.references.values()}.values())
        return [one for one in leaders if self.members(one)] or leaders[:1]

    def members(self, reference: Outcome) -> list[str]:
        """Return the variants that are compared with a reference."""
        return [name for name, one in self.references.items() if one is reference and name != one.name]

    def word(self, outcome: Outcome) -> str:
        """Return "better", "worse", "same", "unclear" or "reference", or "" if there is no verdict."""
        if (found := self.verdicts.get(outcome.name)) is not None:
            return found.verdict
        leads = self.verdicts and any(outcome.name == one.name for one in self.leaders)
        return "reference" if leads and self.references[outcome.name] is outcome else ""


def comparison(found: Sequence[Outcome]) -> Comparison:
    """Compare every finished variant with its reference by the primary metric.

    The verdicts are corrected for multiple comparisons (Holm's procedure in Shaffer's form). All comparisons that the
    study plans count, so that a verdict does not change when others finish, with or without usable values. Only
    variants of the same task are compared. They may differ in the fields that the task lists in
    `training_only_fields`. Seeds are paired. Seeds that only one side has are left out and listed. A seed without a
    finite value excludes its whole variant.

    Args:
        found: The outcomes of the study, at least one, in any order.
    """
    ordered = sorted(found, key=lambda outcome: outcome.order)
    first = ordered[0]
    margin = number(first.experiment.get("margin")) or 0.0
    margin = margin if margin > 0 else None
    # A variant whose folder does not record its task is assumed to have that of the first.
    task_of = {outcome.name: _task_of(outcome) or _task_of(ordered[0]) for outcome in ordered}
    references, named = _references(ordered, task_of)
    by_name = {outcome.name: outcome for outcome in ordered}
    bare = Comparison(references, is_planned(first), margin, {}, {}, {}, named)
    silent = {
        name: _silent(leader, [leader, *(outcome for outcome in found if outcome.name in bare.members(leader))])
        for name, leader in {one.name: one for one in references.values()}.items()
    }
    if any(outcome.experiment.get("all_pairs") is True for outcome in ordered):
        bare = replace(bare, pairs=all_pairs(ordered, task_of, margin, _refused))
    if all(silent[leader.name] for leader in bare.leaders):
        return replace(bare, silent=silent[bare.leaders[0].name])
    pairs, tried, higher, metric_steps, refused, alone = {}, {}, {}, {}, {}, {}
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
        tried[outcome.name] = outcome.tried_rates(), reference.tried_rates()
        higher[outcome.name] = outcome.primary_metric.higher
        metric_steps[outcome.name] = outcome.metric_resolution()
    pending = tuple(
        name
        for name, reference in references.items()
        if name != reference.name and (by_name[name].result is None or reference.result is None)
    )
    if bare.pairs is not None:
        judged = {name: bare.pairs.verdicts[name, references[name].name] for name in pairs}
        return replace(bare, verdicts=judged, refused=refused, alone=alone, pending=pending)
    missing = len({*refused, *pending})
    judged = verdicts(
        pairs, margin, higher=higher, tried=tried, metric_steps=metric_steps, task_of=task_of, missing=missing
    )
    return replace(bare, verdicts=judged, refused=refused, alone=alone, pending=pending)


def _references(ordered: Sequence[Outcome], task_of: dict[str, str]) -> tuple[dict[str, Outcome], bool]:
    """Return the reference of each variant, and whether the study names any."""
    names = {
        outcome.name: against for outcome in ordered if isinstance(against := outcome.experiment.get("against"), str)
    }
    by_name = {outcome.name: outcome for outcome in ordered}
    leaders: dict[str, Outcome] = {}
    references = {}
    for outcome in ordered:
        name, other = outcome.name, names.get(outcome.name)
        if other is not None:
            # If the named reference is missing or has another task, the variant is its own reference.
            references[name] = by_name[other] if task_of.get(other) == task_of[name] else outcome
        else:
            references[name] = leaders.setdefault(task_of[name], outcome)
    return references, bool(names)


def _task_of(outcome: Outcome) -> str:
    """Return a key of the task, "" if it is unknown. Only variants with the same key are compared."""
    experiment = outcome.experiment.get("experiment")
    task = experiment.get("task") if isinstance(experiment, dict) else None
    # Older folders have no comparable part. The task's name replaces it.
    key = outcome.experiment.get("comparable_part") or (task.get("name") if isinstance(task, dict) else None)
    # A preview is trained for less, so it is not compared with full runs.
    return json.dumps([key, bool(outcome.experiment.get("quick"))], sort_keys=True) if key else ""


def _refused(outcome: Outcome, other: Outcome) -> str:
    """Return why two finished variants are not compared, or ""."""
    a, b = outcome.by_seed(outcome.metric), other.by_seed(other.metric)
    return _silent(other, [other, outcome]) or _unpaired(outcome, a, b)


def _unpaired(outcome: Outcome, a: dict[int, float], b: dict[int, float]) -> str:
    """Return why the values of two variants by seed cannot be compared, or ""."""
    if len({*a} & {*b}) < 2:
        return _refusal(outcome, a, b)
    return _worst(outcome, [*a.values(), *b.values()])


def _silent(reference: Outcome, found: Sequence[Outcome]) -> str:
    """Return why nothing can be compared with a reference, or ""."""
    if len({outcome.metric for outcome in found if outcome.result is not None}) > 1:
        return "the finished runs have different primary metrics"
    if reference.result is None:
        return "it has not finished"
    if reference.primary is None:
        return "it has no value"
    if not reference.by_seed(reference.metric):
        return "some of its values are not finite or have no seed"
    return ""


def _refusal(outcome: Outcome, a: dict[int, float], b: dict[int, float]) -> str:
    """Return why two variants share too few seeds."""
    if outcome.primary is None:
        return "it has no value"
    if not a:
        return "some of its values are not finite or have no seed"
    seeds = [", ".join(map(str, sorted(side))) for side in (a, b)]
    if set(a) & set(b) and max(len(a), len(b)) == 1:
        return "a paired comparison needs at least two common seeds, because one seed has no spread"
    return f"a paired comparison needs at least two common seeds, got {seeds[0]} and {seeds[1]}"


def _worst(outcome: Outcome, values: Sequence[float]) -> str:
    """Return why two variants are not compared if every value of both is the worst possible, or ""."""
    metric = outcome.primary_metric
    if any(value != metric.worst for value in values):
        return ""
    value = metric.format(metric.worst)
    return f"every seed of both has {value}, the worst possible value, which does not show that they are equal"
