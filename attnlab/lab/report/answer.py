"""What a study says, in sentences: each variant's headline with its interval, and the paired differences."""

from __future__ import annotations

from attnlab.lab.outcome import Estimate, Outcome
from attnlab.lab.quantity import is_rate, measure, span, title
from attnlab.lab.report.markup import Markup, join, name, tag
from attnlab.lab.statistics import difference


def verdicts(found: list[Outcome]) -> list[Markup]:
    """What finished runs say of each other: the best, the first of `outcomes`, against each of the rest."""
    finished = [outcome for outcome in found if outcome.result is not None]
    if not finished:
        return [Markup("No run in this folder has finished; there is nothing to compare yet.")]
    if len({_metric(outcome) for outcome in finished}) > 1:
        return [Markup("The finished runs name different headline metrics; they are not compared.")]
    sound = [outcome for outcome in finished if outcome.headline is not None and outcome.headline.sound]
    said = [_paired(sound[0], other) for other in sound[1:]]
    return [*said, SEVERAL] if len(said) > 1 else said


SEVERAL = Markup(
    "The best was picked by these same numbers, and the intervals are not corrected for there being several."
)


def reading(outcome: Outcome) -> Markup:
    """One variant's headline metric: "softmax: exact match 99.1% (95% interval 98.7–99.5%, 3 seeds)."."""
    metric, estimate = _metric(outcome), outcome.headline
    if estimate is None:
        reason = "every seed diverged" if outcome.lost() else "it was not measured"
        return join(name(outcome.name), f" has no {title(metric)}: {reason}.")
    lost = len(outcome.lost())
    left_out = f"; {lost} more diverged and {'is' if lost == 1 else 'are'} not in the mean" if lost else ""
    if not estimate.sound:
        bad = sum(value is None for value in estimate.values)
        return join(
            name(outcome.name),
            f" failed: {title(metric)} is not finite for {bad} of {_seeds(estimate)}. It is not averaged.",
        )
    value = tag("b", measure(metric, estimate.mean), class_="number")
    return join(name(outcome.name), f": {title(metric)} ", value, f" ({bounds(metric, estimate)}{left_out}).")


def bounds(metric: str, estimate: Estimate) -> str:
    """The interval in words, with the number of seeds behind it."""
    if estimate.low is None or estimate.high is None:
        one = len(estimate.values) == 1
        return "no interval from one seed" if one else f"no interval; {_seeds(estimate)}"
    return f"95% interval {span(metric, estimate.low, estimate.high)}, {_seeds(estimate)}"


def _paired(a: Outcome, b: Outcome) -> Markup:
    metric = _metric(a)
    first, second = a.by_seed(metric), b.by_seed(metric)
    seeds = sorted(set(first) & set(second))
    if len(seeds) < 2:
        needed = "a paired difference takes two seeds or more that both were trained with."
        return join("Nothing tells ", name(a.name), " from ", name(b.name), f" yet: {needed}")
    centre, low, high = difference([first[s] for s in seeds], [second[s] for s in seeds])
    unit = " points" if is_rate(metric) else ""
    clear = not low <= 0 <= high
    ends = f"{measure(metric, low, sign=True)} to {measure(metric, high, sign=True)}"
    return join(
        tag("b", _verdict(a, b, clear, centre)),
        " Seed by seed, ",
        name(a.name),
        " minus ",
        name(b.name),
        " is ",
        tag("b", measure(metric, centre, sign=True) + unit, class_="number"),
        f" of {title(metric)} (95% interval {ends}, {len(seeds)} pairs), which ",
        "leaves out zero." if clear else "includes zero.",
    )


def _verdict(a: Outcome, b: Outcome, clear: bool, centre: float) -> Markup:
    if not clear:
        return join("These seeds cannot tell ", name(a.name), " from ", name(b.name), ".")
    higher = bool(a.result and a.result["higher"])
    better, worse = (a, b) if (centre > 0) == higher else (b, a)
    return join(name(better.name), " is better than ", name(worse.name), ".")


def _metric(outcome: Outcome) -> str:
    return outcome.result["metric"] if outcome.result else ""


def _seeds(estimate: Estimate) -> str:
    count = len(estimate.values)
    return f"{count} seed{'s' * (count != 1)}"
