"""The verdicts of a study as sentences: each primary metric with its interval, compared with the reference."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.console.format import count
from attnlab.console.metric import Metric
from attnlab.lab.reporting.markup import Markup, join, name, tag
from attnlab.lab.results.comparison import Comparison
from attnlab.lab.results.estimates import Estimate
from attnlab.lab.results.outcome import Outcome, by_metric
from attnlab.lab.statistics import POWER, Verdict

_SUMS = {
    "better": (" is better than ", " are better than ", "."),
    "worse": (" is worse than ", " are worse than ", "."),
    "same": (" is the same as ", " are the same as ", " within {margin}."),
    "unclear": (" does not differ significantly from ", " do not differ significantly from ", " with these seeds."),
}


def verdict(found: Sequence[Outcome], compared: Comparison) -> list[Markup]:
    """Summarize the study in a few sentences, one for each kind of verdict and reference."""
    if not any(outcome.result is not None for outcome in found):
        return [Markup("No run in this folder has finished; there is nothing to compare yet.")]
    if len(found) == 1:
        return []
    if compared.silent:
        reference = name(compared.leaders[0].name)
        return [join("Nothing is compared with the reference ", reference, f": {compared.silent}.")]
    if not compared.members(compared.leaders[0]):
        return [Markup("Every variant has a different task, so no variants are compared.")]
    return [sentence for leader in compared.leaders for sentence in _of(leader, found, compared)]


def _of(leader: Outcome, found: Sequence[Outcome], compared: Comparison) -> list[Markup]:
    """Return the sentences about the variants that are compared with one reference."""
    reference, members, sentences = name(leader.name), compared.members(leader), []
    for word, (one, several, end) in _SUMS.items():
        names = [outcome.name for outcome in found if outcome.name in members and compared.word(outcome) == word]
        if names:
            margin = leader.primary_metric.format_size(compared.margin or 0.0)
            verb = one if len(names) == 1 else several
            sentences.append(join(listed(names), verb, reference, end.format(margin=margin)))
    if lost := [outcome for outcome in found if outcome.lost_lanes() and outcome.name in (leader.name, *members)]:
        counts = [
            join(
                name(one.name),
                f" ({len(one.lost_lanes())} of",
                f" {len({*one.alive_seeds(), *(lane.get('seed') for lane in one.lost_lanes())})})",
            )
            for one in lost
        ]
        sentences.append(join("Some seeds diverged and are excluded from the means: ", _listed(counts), "."))
    if refused := [variant for variant in compared.refused if variant in members]:
        sentences.append(join("There is no verdict on ", listed(refused), "."))
    return sentences


def basis(compared: Comparison) -> Markup | None:
    """Explain the verdicts: what is compared with what, how certain they are, and what the words mean."""
    if compared.silent or not compared.verdicts:
        return None
    first = (
        "the study's first variant" if compared.planned else "the first by name, because these folders record no order"
    )
    with_what = join(name(compared.leaders[0].name), f", {first}")
    if len(compared.leaders) > 1:
        with_what = Markup("the first variant with the same task" + ("" if compared.planned else ", by name"))
    if compared.named:
        with_what = Markup("the reference that the study names for it")
    if compared.pairs is not None:
        with_what = join(with_what, ", and with every other variant")
    unfinished, total = compared.unfinished, compared.comparisons
    without = total - unfinished - len(compared.verdicts if compared.pairs is None else compared.pairs.verdicts)
    gaps = [f"{unfinished} of which are not finished"] if unfinished else []
    gaps += [f"{without} of which have no values that can be compared"] if without else []
    plan = f" that this study plans, {' and '.join(gaps)}" if gaps else ""
    correction = (
        f"The verdicts are corrected for all {total} comparisons{plan} (Holm's procedure in Shaffer's form): with "
        "95% confidence none of them is a false claim. Their intervals hold jointly at 95%. A verdict may be more "
        "certain than its interval. "
    )
    same = (
        "No margin was set, so no variant is called the same. "
        if compared.margin is None
        else f"The same means that the difference is less than {_margins(compared.leaders, compared.margin)}. Better "
        "or worse means that there is a difference, which may be smaller than that. "
    )
    normal = "The values of seeds are assumed to be normally distributed. "
    bimodal = (
        "If the seeds of a variant form two clusters, for example because some learn the task and others do not, a "
        "difference of another variant of about the gap between them is claimed only if enough pairs agree to rule out "
        "chance. "
    )
    selection = "If a learning rate was chosen among several equally good ones, the interval accounts for the choice. "
    return join(
        "Each variant is compared with ",
        with_what,
        ", over the same seeds. ",
        correction if total > 1 else "The verdict and its interval are at 95%. ",
        same,
        normal,
        bimodal if total > 1 else "",
        selection if any(max(found.tried) > 1 for found in compared.verdicts.values()) else "",
        "The effect is Hedges' g of the paired differences. Detectable differences assume the observed spread.",
    )


def reading(outcome: Outcome) -> Markup:
    """Report a primary metric: "softmax: exact match 99.1% (95% interval 98.7–99.5%, 3 seeds)."."""
    metric, estimate = outcome.primary_metric, outcome.primary
    if estimate is None:
        reason = "every seed diverged" if outcome.lost_lanes() else "it was not measured"
        return join(name(outcome.name), f" has no {metric.title}: {reason}.")
    lost = len(outcome.lost_lanes())
    left_out = f"; {lost} more diverged and {'is' if lost == 1 else 'are'} not in the mean" if lost else ""
    if not estimate.sound:
        bad = sum(value is None for value in estimate.values)
        return join(
            name(outcome.name),
            f" failed: {metric.title} is not finite for {bad} of {_seeds(estimate)}. It is not averaged.",
        )
    value = tag("b", metric.format(estimate.mean), class_="number")
    return join(name(outcome.name), f": {metric.title} ", value, f" ({bounds(metric, estimate)}{left_out}).")


def against(outcome: Outcome, compared: Comparison) -> Markup | None:
    """Report a verdict with its numbers: "Worse than softmax: −2.2 points (interval …, 3 pairs; effect −4.2)."."""
    if compared.word(outcome) == "reference":
        return Markup("The reference.") if compared.verdicts else None
    leader = compared.references[outcome.name]
    if outcome.name in compared.refused:
        return join("Not compared with ", name(leader.name), f": {compared.refused[outcome.name]}.")
    found = compared.verdicts.get(outcome.name)
    if found is None:
        return None
    metric, reference = outcome.primary_metric, name(leader.name)
    opening = {
        "better": join(tag("b", "Better"), " than ", reference),
        "worse": join(tag("b", "Worse"), " than ", reference),
        "same": join(tag("b", "The same"), " as ", reference),
        "unclear": join(tag("b", "Unclear"), " compared with ", reference),
    }[found.verdict]
    return join(opening, ": ", _numbers(metric, found), _reach(metric, found, compared), _alone(outcome, compared))


def bounds(metric: Metric, estimate: Estimate) -> str:
    """Describe the interval, with the number of seeds."""
    if estimate.shown_interval is not None:
        return f"95% interval {estimate.format_interval(metric)}, {_seeds(estimate)}"
    if len(estimate.values) == 1:
        return "no interval from one seed"
    return (
        f"no interval: {_seeds(estimate)} show no spread" if estimate.all_equal else f"no interval; {_seeds(estimate)}"
    )


def _numbers(metric: Metric, found: Verdict) -> Markup:
    """Report the difference, the interval, the number of pairs and the effect size."""
    unit = " points" if metric.is_fraction else ""
    level = "95% interval" if found.comparisons == 1 else "joint interval"
    ends = metric.format_difference_interval(found.low, found.high)
    interval = f"{level} {' to '.join(ends)}" if found.low < found.high else "no interval: no spread"
    effect = "" if found.effect is None else f"; effect {_two(found.effect)}"
    return join(
        tag("b", metric.format_difference(found.difference) + unit, class_="number"),
        f" ({interval}, {found.seeds} pairs{effect}).",
    )


def _two(effect: float) -> str:
    # The format .2g alone would write 110 as 1.1e+02.
    if abs(effect) < 0.005:
        return "0.0"
    return format(effect, "+.0f" if abs(effect) >= 9.95 else "+.2g").replace("-", "−")


def _reach(metric: Metric, found: Verdict, compared: Comparison) -> str:
    """Say if seeds show no spread. For an unclear verdict, say what could have been found, and with how many seeds."""
    if found.spread == 0:
        return " These seeds show no spread, but other seeds may."
    if found.verdict != "unclear":
        return ""
    if found.bimodal_gap and not found.low <= 0 <= found.high:
        return (
            " The interval uses only the spread of these pairs. But the seeds of another variant form two clusters "
            f"{metric.format_size(found.bimodal_gap)} apart, so this difference over {found.seeds} pairs may be chance."
            f" Ruling out chance takes {count(found.min_pairs_if_bimodal)} pairs that agree."
        )
    detectable = found.minimum_detectable_difference
    could = f" Such a study has {POWER:.0%} power to detect a true difference of {metric.format_size(detectable)}"
    if detectable > metric.width:
        could = " So few seeds cannot reliably detect any difference"
    takes = {"detecting the observed difference": found.seeds_for_difference}
    if compared.margin is not None:
        takes[f"detecting a difference of {metric.format_size(compared.margin)}"] = found.seeds_for_margin
        takes["calling two equal variants the same"] = found.seeds_for_same
    parts = [f"{what} takes {count(seeds)} seeds" for what, seeds in takes.items() if (seeds or 0) > found.seeds]
    return f"{could}{'; ' * bool(parts)}{', '.join(parts)}."


def _alone(outcome: Outcome, compared: Comparison) -> str:
    """List the seeds without a partner, and whether they diverged."""
    seeds = compared.alone[outcome.name]
    if not seeds:
        return ""
    diverged = {lane.get("seed") for side in (outcome, compared.references[outcome.name]) for lane in side.lost_lanes()}
    listed = ", ".join(f"{seed} (diverged)" if seed in diverged else str(seed) for seed in seeds)
    return f" Left out for lack of a partner: seed{'s' * (len(seeds) > 1)} {listed}."


def _margins(leaders: Sequence[Outcome], margin: float) -> str:
    """Format the margin in the unit of each metric: "1 point of exact match, or 0.01 of nats per character"."""
    metrics = [metric for metric in by_metric(leaders) if metric.name]
    if len(metrics) == 1:
        return metrics[0].format_size(margin)
    return ", or ".join(f"{metric.format_size(margin)} of {metric.title}" for metric in metrics)


def listed(names: Sequence[str]) -> Markup:
    """List names in words: "a, b and c"."""
    return _listed([name(one) for one in names])


def _listed(shown: Sequence[Markup]) -> Markup:
    if len(shown) == 1:
        return shown[0]
    return join([join(one, ", ") for one in shown[:-2]], shown[-2], " and ", shown[-1])


def _seeds(estimate: Estimate) -> str:
    seeds = len(estimate.values)
    return f"{seeds} seed{'s' * (seeds != 1)}"
