"""The sections of a study's page that hold its numbers. Each function returns None if it has nothing to show."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from attnlab.console.metric import Metric
from attnlab.lab.reporting.curve_svg import learning_curves
from attnlab.lab.reporting.curves import Curve, curve, points_of
from attnlab.lab.reporting.layout import scroll, section
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.reporting.matrix import matrices
from attnlab.lab.reporting.strips import Mark, strips
from attnlab.lab.reporting.verdict_text import against, basis, reading, verdict
from attnlab.lab.results.comparison import comparison
from attnlab.lab.results.estimates import Estimate
from attnlab.lab.results.outcome import Outcome, by_metric
from attnlab.lab.results.table import Cell, Sheet, settings_of, sheets, state
from attnlab.lab.results.tested import model_line
from attnlab.lab.results.ties import tie

NAMED = 8  # how many variants that are not begun are named, at most
DASHES = ("none", "6 2", "2 2", "7 2 2 2")


def opening(found: list[Outcome], study: str) -> Markup:
    """Return the question and the warnings that a reader needs before the numbers."""
    asked = next((o.experiment["question"] for o in found if o.experiment.get("question")), "")
    finished = sum(outcome.result is not None for outcome in found)
    counted = f"{finished} of {len(found)} variants finished" if finished < len(found) else ""
    eyebrow = [name(study), " · attnlab", f" · {counted}" if counted else ""]
    quick = any(outcome.experiment.get("quick") for outcome in found)
    warning = "This is a preview (--quick). Its training is too short for conclusions."
    return tag(
        "header",
        tag("p", eyebrow, class_="eyebrow"),
        tag("h1", asked or study, dir="auto"),
        tag("p", tag("b", "Quick run. "), warning, class_="banner") if quick else None,
        _troubles(found),
        _settings(found),
    )


def findings(found: list[Outcome]) -> Markup:
    """Return the answer in words, with a plot of each primary metric."""
    sound = by_metric(o for o in found if o.primary is not None and o.primary.sound)
    plots = [_strips(metric, some) for metric, some in sound.items()]
    compared = comparison(found)
    sentences = [tag("p", sentence) for sentence in verdict(found, compared)]
    readings = [
        tag("li", reading(outcome), " ", against(outcome, compared), style=f"--of:var(--v{outcome.order % 8})")
        for outcome in found
        if outcome.result is not None
    ]
    unfinished = [
        tag("p", name(o.name), f": {state(o)}; it is not included in any number here.", class_="quiet")
        for o in found
        if o.result is None and o.begun
    ]
    waiting = [o.name for o in sorted(found, key=lambda o: o.order) if not o.begun]
    if waiting:
        more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
        names = [part for one in waiting[:NAMED] for part in (", ", name(one))][1:]
        unfinished.append(tag("p", "Not begun: ", names, f"{more}.", class_="quiet"))
    quick = any(outcome.experiment.get("quick") for outcome in found)
    heading = "The answer of a quick run" if quick else "The answer"
    explanation = basis(compared)
    return section(
        heading,
        tag("div", sentences, class_="said"),
        plots,
        tag("ul", readings, class_="verdicts") if readings else None,
        tag("p", explanation, class_="quiet") if explanation else None,
        [] if compared.pairs is None else matrices(compared.pairs),
        unfinished,
        class_="answer",
    )


def numbers(found: list[Outcome]) -> Markup:
    """Return the results and their costs, with a table for each primary metric."""
    tables = sheets(found)
    parts = [
        (tag("h3", sheet.title), _table(sheet, f"Results, {sheet.title}"))
        if len(tables) > 1
        else _table(sheet, "Results")
        for sheet in tables
    ]
    chosen = sorted({outcome.primary_metric.title for outcome in found if outcome.tried_rates() > 1})
    notes = NOTES + (CHOSEN.format(" and of ".join(chosen)) if chosen else "")
    remarks = [(o.name, line(o.result or {})) for o in found for line in (tie, model_line)]
    lines = [tag("p", name(variant), f": {line}.", class_="quiet") for variant, line in remarks if line]
    return section("The numbers", parts, lines, tag("p", notes, class_="quiet"), _data(found))


NOTES = (
    "Metrics are measured on the test set, with 95% intervals (Student's t over seeds; intervals of rates are cut at 0 "
    "and 100%). If all seeds have the same value, there is no spread and no interval, although other seeds might "
    "differ. All lanes (seeds times learning rates) train together: time and memory are for all lanes, FLOPs for one. "
    "Peak memory is the compiler's estimate for one call of several training steps; below it is the peak memory of the "
    "process. The decoding state is the memory that one example needs while it is decoded. Hover over a number to see "
    "all its digits."
)
CHOSEN = (
    " If a learning rate was chosen among several equally good ones, only the interval of {} accounts for the choice."
)


def learning(found: list[Outcome]) -> Markup | None:
    """Return the curves of the loss and of each primary metric on validation."""
    drawn = curves(found)
    if not drawn:
        return None
    shown = {one.order: one for _, _, some in drawn for one in some}
    legend = tag("ul", [_key(one) for one in shown.values()], class_="legend")
    note = _band_note([one for _, _, some in drawn for one in some])
    figures = [_figure(*one) for one in drawn]
    return section("Learning curves", legend, tag("div", figures, class_="pair"), tag("p", note, class_="quiet"))


def curves(found: list[Outcome]) -> list[tuple[Metric, str, list[Curve]]]:
    """Return the learning curves that exist: the metric, its description, and the curves of the variants."""
    groups = by_metric(outcome for outcome in found if outcome.result is not None)
    drawn = []
    for metric, finished in groups.items():
        primary = f" (primary metric: {metric.title})" if len(groups) > 1 else ""
        loss = finished[0].declared("loss")
        for key, shown, words in (
            ("loss", loss, f"training loss{primary}"),
            (f"valid.{metric.name}", metric, f"{metric.title} on validation"),
        ):
            points = points_of(len(finished))
            some = [one for one in (curve(outcome, key, points) for outcome in finished) if one is not None]
            drawn += [(shown, words, some)] if some else []
    return drawn


def other_files(files: Sequence[str]) -> Markup:
    """Return links to the other files in the folder: the numbers and figures as files, and the answers to the test."""
    links = [tag("li", tag("a", file, href=quote(file))) for file in files]
    return section("Files next to this page", tag("ul", links, class_="plain"))


def _strips(metric: Metric, some: Sequence[Outcome]) -> Markup:
    rows = [(name(o.name), [Mark(o.primary, o.order, o.name)]) for o in some if o.primary is not None]
    caption = _caption(metric, [mark.estimate for _, marks in rows for mark in marks])
    return tag("figure", caption, strips(metric, rows, seeds=True))


def _caption(metric: Metric, estimates: Sequence[Estimate]) -> Markup:
    words = "rings are seeds, the dot is their mean, the line is its 95% interval"
    if any(estimate.all_equal for estimate in estimates):
        words += " (no line if the seeds show no spread)"
    if all(len(estimate.values) == 1 for estimate in estimates):
        words = "one seed, so there is no interval"
    return tag("figcaption", tag("b", metric.title), tag("span", f" on the test set: {words}", class_="quiet"))


def _troubles(found: list[Outcome]) -> Markup | None:
    lines = [tag("li", line) for outcome in found for line in outcome.troubles]
    if not lines:
        return None
    return tag("div", tag("b", "These files could not be read:"), tag("ul", lines, class_="plain"), class_="banner")


def _settings(found: list[Outcome]) -> Markup | None:
    """Return a warning if the runs were made under different settings of jax."""
    if not (lines := settings_of(found)):
        return None
    words = "The runs used different settings, which alone may change their numbers:"
    return tag("div", tag("b", words), tag("ul", [tag("li", line) for line in lines], class_="plain"), class_="banner")


def _data(found: list[Outcome]) -> Markup | None:
    """Return the notes about how the data were read, without duplicates."""
    notes = [o.experiment.get("notes") for o in found]
    lines = dict.fromkeys(str(line) for listed in notes if isinstance(listed, list) for line in listed)
    if not lines:
        return None
    return tag("div", tag("p", "Notes on the data:"), tag("ul", [tag("li", line) for line in lines]), class_="quiet")


def _table(sheet: Sheet, label: str) -> Markup:
    head = tag("tr", tag("th", "variant", scope="col"), [tag("th", text, scope="col") for text in sheet.heads])
    body = [_row(outcome, sheet.heads, cells) for outcome, cells in zip(sheet.variants, sheet.rows, strict=True)]
    return scroll(tag("table", tag("thead", head), tag("tbody", body), class_="results"), label)


def _row(outcome: Outcome, heads: list[str], cells: list[Cell]) -> Markup:
    first = tag("th", name(outcome.name), scope="row")
    if outcome.result is None:
        return tag("tr", first, tag("td", cells[0].text, colspan=len(heads), class_="state"))
    return tag("tr", first, [_cell(head, cell) for head, cell in zip(heads, cells, strict=True)])


def _cell(head: str, cell: Cell) -> Markup:
    note = tag("span", cell.note, class_="quiet") if cell.note else None
    value = tag("span", cell.text, title=cell.exact or None)
    return tag("td", tag("span", head, class_="head", aria_hidden="true"), value, note)


def _figure(metric: Metric, words: str, some: list[Curve]) -> Markup:
    label = f"{words} by step for " + ", ".join(one.name for one in some)
    return tag("figure", tag("figcaption", tag("b", words)), learning_curves(some, metric, label))


def _key(one: Curve) -> Markup:
    dash = DASHES[(one.order + one.order // 8) % len(DASHES)]
    line = tag("line", x1=0, x2=30, y1=5, y2=5, stroke_width=2.5, stroke_dasharray=dash)
    return tag("li", tag("svg", line, aria_hidden="true"), name(one.name), class_=f"v{one.order % 8}")


def _band_note(curves: list[Curve]) -> str:
    seeds = {one.values.shape[1] for one in curves}
    sentences = ["Lines are means over seeds."]
    if any(2 <= count < 5 for count in seeds):
        sentences.append("Bands reach from the lowest to the highest seed, because few seeds give no useful interval.")
    if any(count >= 5 for count in seeds):
        sentences.append("Bands are 95% intervals of the mean; they have no width if the seeds show no spread.")
    if 1 in seeds:
        sentences.append("A single seed has no band.")
    if any(one.cut for one in curves):
        sentences.append("A dotted line that ends in a cross is a seed that diverged; it is excluded from the mean.")
    return " ".join([*sentences, "If several learning rates were trained, the chosen one is shown."])
