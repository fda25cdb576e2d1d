"""Corrections for several comparisons in one study."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from attnlab.lab.statistics.samples import BySeed, bimodal_gap, check_level, paired, resolution
from attnlab.lab.statistics.verdict import Case, Verdict, check_margin, conclude, p_values

Name = TypeVar("Name", bound=Hashable)  # of a comparison: the name of a variant, or of two


def holm(pvalues: Sequence[float], level: float = 0.95) -> list[bool]:
    """Return which of several hypotheses Holm's step-down procedure rejects.

    The probability of rejecting any true hypothesis is at most 1 − level, without any assumption of independence. In
    ascending order, the j-th of m p-values is compared with (1 − level)/(m − j + 1), up to the first that fails.

    Args:
        pvalues: the p-value of each hypothesis.
        level: the joint confidence level, in (0, 1).

    Returns:
        For each hypothesis, in the given order, whether it is rejected.

    Raises:
        ValueError: for a p-value outside [0, 1], or a level outside (0, 1).

    Holm 1979, Scand. J. Stat. 6:65.

    >>> holm([0.01, 0.04, 0.03])
    [True, False, False]
    """
    check_level(level)
    for p in pvalues:
        if not 0 <= p <= 1:
            raise ValueError(f"p={p} must lie between 0 and 1")
    # Groups of one hypothesis each: every hypothesis that is not rejected yet may be true.
    return [p <= 1 - level for (p,) in _adjusted([(p,) for p in pvalues])]


def verdicts(
    pairs: Mapping[Name, tuple[BySeed, BySeed]],
    margin: float | None,
    level: float = 0.95,
    higher: bool | Mapping[Name, bool] = True,
    tried: Mapping[Name, tuple[int, int]] | None = None,
    metric_steps: Mapping[Name, float | None] | None = None,
    task_of: Mapping[Name, Hashable] | None = None,
    missing: int = 0,
) -> dict[Name, Verdict]:
    """Return the verdict of every comparison in a study, corrected for all of them.

    The probability that a study makes any false claim is at most 1 − level. This holds whatever the true differences
    are and however the comparisons depend on each other, for example through a common base, if seeds vary about
    normally. "better" or "worse" is false if the true difference is 0, or has the other sign and matters. "same" is
    false if the true difference is `margin` or more.

    Correction. Each comparison has two hypotheses: that the difference is 0, and that it is `margin` or more. At most
    one of the two is true. Holm's procedure takes all 2k p-values in ascending order and compares each with
    (1 − level)/m. Here m is how many hypotheses can still be true, which is the number of comparisons of which not both
    are rejected (Shaffer's form). So k comparisons cost as much as k tests, not 2k. Without a margin each comparison
    has only the first hypothesis (Holm's form). Stepping down once a comparison is decided would be wrong: one that is
    rightly "better" can still be wrongly called "same".

    `p` and `p_same` of each verdict are adjusted in this way, and a claim is made if they are at most 1 − level. `low`
    and `high` are at 1 − (1 − level)/k and hold jointly (Bonferroni). A claim made at m < k may therefore be more
    certain than its interval. A single comparison is judged as by `compare`.

    Bimodal metrics. If each seed either learns the task or does not, three seeds of one variant may all learn it and
    three of another may all fail, by chance. Then neither shows any spread. Other variants of the same task reveal
    this if their seeds form two clusters (`samples.bimodal_gap`). If the difference is half to twice such a gap, its p
    is at least 2 · 4^−n for n pairs (`verdict.bimodal_p_bound`). With several variants, three pairs then hardly suffice
    for a claim, and `Verdict.min_pairs_if_bimodal` is the number that does. A single comparison has no other variants
    to go by, and from three seeds on it needs none. With only two seeds neither helps. `python -m tests.lab.coverage`
    measures both.

    Args:
        pairs: the values (a, b) of each comparison, by name, as in `compare`.
        margin: the largest difference that does not matter, or None.
        level: the joint confidence level, in (0, 1).
        higher: whether a higher value is better, for all comparisons or by name.
        tried: `compare`'s `tried`, by name. The default is (1, 1).
        metric_steps: `compare`'s `metric_step`, by name. The default is None.
        task_of: the task of each comparison, by name. Only comparisons of the same task share bimodal gaps.
        missing: the number of planned comparisons without values, because runs have not finished or because a value
            is not finite. They count in k and m, as if their p-values were 1. When values come in, adjusted p-values
            can only become smaller, so that the number of comparisons never revokes a claim.

    Returns:
        The verdict of each comparison, by name.

    Raises:
        ValueError: as `compare` does, with the name of the comparison. Also if `missing` is below 0.

    Shaffer 1986, J. Am. Stat. Assoc. 81:826, procedure S2.

    >>> base = [0.50, 0.52, 0.51, 0.49]
    >>> found = verdicts({"good": ([0.90, 0.93, 0.91, 0.90], base), "equal": ([0.50, 0.521, 0.511, 0.489], base)}, 0.01)
    >>> {name: verdict.verdict for name, verdict in found.items()}
    {'good': 'better', 'equal': 'same'}
    """
    check_margin(margin)
    check_level(level)
    if missing < 0:
        raise ValueError(f"{missing=} must be at least 0; it counts the planned comparisons without values")
    cases, chosen, least, kinds, gaps = {}, tried or {}, metric_steps or {}, task_of or {}, {}
    for name, (a, b) in pairs.items():
        try:
            up = higher if isinstance(higher, bool) else higher[name]
            cases[name] = Case(paired(a, b), chosen.get(name, (1, 1)), up, resolution(a, b, least.get(name)))
        except ValueError as refusal:
            raise ValueError(f"{name}: {refusal}") from refusal
        gaps[name] = bimodal_gap(a), bimodal_gap(b)
    for name, case in cases.items():
        others = [other for other in gaps if other != name and kinds.get(other) == kinds.get(name)]
        cases[name] = replace(case, bimodal_gaps=tuple(one for other in others for one in gaps[other]))
    unknown = [(1.0,)] * missing
    adjusted = _adjusted([*(p_values(case, margin) for case in cases.values()), *unknown])
    return {
        name: conclude(case, margin, level, *p, comparisons=len(cases) + missing)
        for (name, case), p in zip(cases.items(), adjusted, strict=False)
    }


def _adjusted(groups: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return p-values adjusted for each other, given that at most one hypothesis of each group is true."""
    standing = [len(group) for group in groups]  # how many hypotheses of each group are not rejected yet
    ordered = sorted((p, n, k) for n, group in enumerate(groups) for k, p in enumerate(group))
    adjusted = [list(group) for group in groups]
    most = 0.0
    for p, n, k in ordered:
        most = max(most, min(1.0, p * sum(map(bool, standing))))
        adjusted[n][k] = most
        standing[n] -= 1
    return [tuple(group) for group in adjusted]
