"""Several comparisons in one study: the more questions, the surer each answer must be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from attnlab.lab.statistics.samples import BySeed, bimodal_gap, check_level, paired, resolution
from attnlab.lab.statistics.verdict import Case, Verdict, check_margin, conclude, p_values

Name = TypeVar("Name", bound=Hashable)  # a comparison's: a variant's name, or two


def holm(pvalues: Sequence[float], level: float = 0.95) -> list[bool]:
    """Which of several hypotheses are rejected, with a probability of at most 1 − level that any of them is true.

    From the smallest p on, the j-th of m is held against (1 − level)/(m − j + 1), up to the first that fails. Nothing
    is taken to be independent.

    Raises ValueError for a p-value outside 0 … 1, and for a level outside (0, 1).
    Holm 1979, Scand. J. Stat. 6:65.

    >>> holm([0.01, 0.04, 0.03])
    [True, False, False]
    """
    check_level(level)
    for p in pvalues:
        if not 0 <= p <= 1:
            raise ValueError(f"p={p} must lie between 0 and 1")
    # One hypothesis each: as many may be true as have not been rejected yet.
    return [p <= 1 - level for (p,) in _adjusted([(p,) for p in pvalues])]


def verdicts(
    pairs: Mapping[Name, tuple[BySeed, BySeed]],
    margin: float | None,
    level: float = 0.95,
    higher: bool | Mapping[Name, bool] = True,
    tried: Mapping[Name, tuple[int, int]] | None = None,
    steps: Mapping[Name, float | None] | None = None,
    asked: Mapping[Name, Hashable] | None = None,
    pending: int = 0,
) -> dict[Name, Verdict]:
    """Every variant's verdict (a against b, by name), corrected for all of them: claims of sameness too.

    The probability that a study claims anything false is at most 1 − level, whatever is true of its variants and
    however they depend on each other, as by a common base, where seeds scatter about like a normal distribution. False
    is "better" or "worse" where the true difference is 0, or has the other sign and matters; and "same" where it is
    `margin` or more.

    Where each seed learns the task or does not, three of one variant may all have learned it and three of another all
    not, by chance: there is then next to no spread within either. What tells of that are other variants, whose seeds
    lie in two heaps (`samples.bimodal_gap`), of those asked the same (`asked` says by name what each was). The p of a
    difference of about the distance of those, of half to twice as much, is then no less than what chance makes of as
    many pairs: 2 · 4^−n (`verdict.chance`). Of several variants three pairs hardly claim it, and `Verdict.agreeing`
    says how many do. Of one variant alone there is nothing to go by, and from three seeds on no need; of two seeds
    alone neither helps (`python -m tests.lab.coverage` counts both).

    Each variant brings two hypotheses, that the difference is 0 and that it is `margin` or more. No more than one of
    the two is true. Holm's procedure goes through all 2k p-values from the smallest on, and holds each against (1 −
    level)/m, where m is how many can still be true: variants of which not both have been rejected (Shaffer's form). So
    k variants cost what k tests do, not 2k. Without a margin each brings the first alone (Holm's own form). To step
    down for each variant decided would not do: one that is rightly "better" can still be wrongly the "same".

    `p` and `p_same` of each verdict are so adjusted: a claim is made where they are at most 1 − level. `low` and
    `high` are at 1 − (1 − level)/k, and hold together (Bonferroni); a claim that m < k allowed may therefore be surer
    than its interval. One variant alone is judged as by `compare`. `tried` gives `compare`'s, by name, where a
    learning rate was chosen; `higher` is `compare`'s, for all or by name, and `steps` holds its `step` by name.

    `pending` is how many more comparisons the study plans whose runs have not finished. They count among the k and
    among the m, as if their p-values were 1. When they finish, adjusted p-values can only become smaller: the number of
    comparisons alone never takes a claim back.

    Raises ValueError as `compare` does, naming the variant, and for `pending` below 0.
    Shaffer 1986, J. Am. Stat. Assoc. 81:826, procedure S2.

    >>> base = [0.50, 0.52, 0.51, 0.49]
    >>> found = verdicts({"good": ([0.90, 0.93, 0.91, 0.90], base), "equal": ([0.50, 0.521, 0.511, 0.489], base)}, 0.01)
    >>> {name: verdict.verdict for name, verdict in found.items()}
    {'good': 'better', 'equal': 'same'}
    """
    check_margin(margin)
    check_level(level)
    if pending < 0:
        raise ValueError(f"{pending=} must be 0 or more: the planned comparisons whose runs have not finished")
    cases, chosen, least, kinds, apart = {}, tried or {}, steps or {}, asked or {}, {}
    for name, (a, b) in pairs.items():
        try:
            up = higher if isinstance(higher, bool) else higher[name]
            cases[name] = Case(paired(a, b), chosen.get(name, (1, 1)), up, resolution(a, b, least.get(name)))
        except ValueError as refusal:
            raise ValueError(f"{name}: {refusal}") from refusal
        apart[name] = bimodal_gap(a), bimodal_gap(b)
    for name, case in cases.items():
        others = [other for other in apart if other != name and kinds.get(other) == kinds.get(name)]
        cases[name] = replace(case, bimodal_gaps=tuple(one for other in others for one in apart[other]))
    unknown = [(1.0,)] * pending
    adjusted = _adjusted([*(p_values(case, margin) for case in cases.values()), *unknown])
    return {
        name: conclude(case, margin, level, *p, comparisons=len(cases) + pending)
        for (name, case), p in zip(cases.items(), adjusted, strict=False)
    }


def _adjusted(groups: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """The p-values, adjusted for each other, where at most one hypothesis of each group is true."""
    standing = [len(group) for group in groups]  # of each group, how many are not rejected
    ordered = sorted((p, n, k) for n, group in enumerate(groups) for k, p in enumerate(group))
    adjusted = [list(group) for group in groups]
    most = 0.0
    for p, n, k in ordered:
        most = max(most, min(1.0, p * sum(map(bool, standing))))
        adjusted[n][k] = most
        standing[n] -= 1
    return [tuple(group) for group in adjusted]
