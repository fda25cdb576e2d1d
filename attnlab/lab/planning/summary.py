"""Describe a study in words: every field, with differences marked, and the costs of each variant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from attnlab import registry
from attnlab.console.escape import plain
from attnlab.console.format import NONE, count, large
from attnlab.console.tables import columns
from attnlab.lab.study.study import Experiment, Study, check_study, warmups
from attnlab.lab.study.values import text
from attnlab.pattern import Pattern
from attnlab.system import compilation_cache
from attnlab.system.settings import check

if TYPE_CHECKING:
    from attnlab.lab.planning.matching import Matched

DIFFERS = "≠"


class Words(str):
    """Text whose `repr` is the text itself, so that a notebook shows it without quotes."""

    def __repr__(self) -> str:
        return str(self)


def show(study: Study, roofline: bool = False) -> Words:
    """Describe a study: its fields, and the costs of each variant. Nothing is trained.

    Counted FLOPs are kept in the cache folder of compiled programs, which is turned on for this process.

    Args:
        study: the study.
        roofline: whether to add the roofline of each variant's operations on this machine.

    Returns:
        The description.

    Raises:
        TypeError: if `study` is not a Study.
        ValueError: if a match or a budget cannot be met. Also if the margin or an expected value lies outside the range
            of the primary metric.
        DataError: if data are not available.
    """
    from attnlab.lab.planning.costs import describe
    from attnlab.lab.planning.ledger import Ledger
    from attnlab.lab.planning.matching import matched
    from attnlab.lab.planning.plan import check_ranges, check_steps

    check_study(study)
    check()
    compilation_cache.enable()
    ledger = Ledger()
    found = matched(study, ledger)
    rows = describe(study, found)
    notes: dict[str, None] = {}
    for variant, experiment in found.experiments.items():
        problem = ledger.problem(experiment)
        check_ranges(study, variant, problem.metric)
        check_steps(problem, experiment.train)
        notes |= dict.fromkeys(problem.notes)
    # Compute everything before returning anything, so that a study that is refused gives only its error.
    fields = settings(study, found)
    marked = any(line.startswith(DIFFERS) for line in fields)
    lines = [*fields, *([f"{DIFFERS} differs between variants"] if marked else []), "", *costs(rows), *summed(rows)]
    lines += ["", *map(plain, notes)] if notes else []
    if roofline:
        from attnlab.analysis.measure import machine
        from attnlab.lab.planning.roofline import placed

        lines += ["", *placed(found, machine())]
    return Words("\n".join(lines))


def settings(study: Study, found: Matched | None = None) -> list[str]:
    """Return a line for every field of a study. A field that differs is marked and has a line for each variant.

    A study with a match or a budget is shown as solved, below its notes and a report of what was changed.

    Args:
        study: the study.
        found: the result of `matched`. None calls it if it is needed.
    """
    experiments, solved = study.variants(), []
    if found is not None or study.match is not None or study.budget != "steps":
        found = _matched(study) if found is None else found
        experiments, solved = found.experiments, found.lines
    variants = {name: flat(experiment) for name, experiment in experiments.items()}
    paths = _merged(variants.values())
    wide, names = max(map(len, paths)), max(map(len, variants))
    question = " ".join(study.question.split())
    lines = [f"{study.name or 'study'}: {question}".rstrip(": "), _lanes(experiments), ""]
    solved = [*study.notes, *solved, *warmups(experiments)]
    lines += [*solved, ""] if solved else []
    for path in paths:
        values = {name: fields[path] for name, fields in variants.items() if path in fields}
        if len(values) == len(variants) and len(set(values.values())) == 1:
            lines.append(f"  {path:<{wide}}  {next(iter(values.values()))}")
            continue
        for n, (name, value) in enumerate(values.items()):
            left = f"{DIFFERS} {path:<{wide}}" if n == 0 else " " * (wide + 2)
            lines.append(f"{left}  {name + ':':<{names + 1}} {value}")
    return [plain(line) for line in lines]


def _matched(study: Study) -> Matched:
    # Imported here, because counting costs imports jax and reading the fields of a study does not.
    from attnlab.lab.planning.ledger import Ledger
    from attnlab.lab.planning.matching import matched

    return matched(study, Ledger())


def flat(experiment: Experiment) -> dict[str, str]:
    """Return every field as text, by dotted path. A registered config is its name, followed by its fields."""
    return dict(_flat(experiment, ()))


def _flat(config: object, path: tuple[str, ...]):
    if path and (not is_dataclass(config) or registry.home(config, path[-1])):
        yield ".".join(path), text(config)
    if isinstance(config, Pattern):
        return  # its text names the entries
    for name in registry.field_names(config):
        yield from _flat(getattr(config, name), (*path, name))


def _merged(variants: Iterable[dict[str, str]]) -> list[str]:
    """Merge the paths of all variants, keeping the fields of one config together."""
    tree: dict = {}
    for path in (path for fields in variants for path in fields):
        node = tree
        for name in path.split("."):
            node = node.setdefault(name, {})
        node[""] = {}  # a field of its own, not only the way to one
    return list(_walk(tree, ()))


def _walk(tree: dict, above: tuple[str, ...]):
    for name, below in tree.items():
        if name == "":
            yield ".".join(above)
        else:
            yield from _walk(below, (*above, name))


def _lanes(experiments: dict[str, Experiment]) -> str:
    """Return the numbers of variants and lanes, and those of seeds and rates if they are the same for all variants."""
    trains = [experiment.train for experiment in experiments.values()]
    first, total = _plural(len(trains), "variant"), _plural(sum(len(train.lanes) for train in trains), "lane")
    if len(kinds := {(len(train.seed_list), len(train.rates)) for train in trains}) > 1:
        return f"{first}, {total}"
    ((seeds, rates),) = kinds
    return f"{first} × {_plural(seeds, 'seed')} × {_plural(rates, 'learning rate')} = {total}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# The name and the format of each cost for display. Other costs are shown by their key, without a format.
COSTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "parameters": ("parameters", count),
    "flops": ("FLOPs per step", lambda number: large(number, "FLOP")),
    "state_bytes": ("decoding state", lambda number: large(number, "B")),
    "memory": ("weights and optimiser", lambda number: large(number, "B")),
    "lanes": ("lanes", count),
    "steps": ("steps", count),
    "training": ("FLOPs, all lanes", lambda number: large(number, "FLOP")),
}


def costs(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table of costs from a dict per variant."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    heads = [COSTS[key][0] if key in COSTS else key.replace("_", " ") for key in keys]
    return columns([heads, *[[_cost(key, row.get(key)) for key in keys] for row in rows]], right=True)


def summed(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line with the FLOPs of training all variants, or nothing for a single one."""
    return [f"all {len(rows)} variants: {large(sum(row['training'] for row in rows), 'FLOP')}"] if len(rows) > 1 else []


def _cost(key: str, value: int | None) -> str:
    if value is None:
        return NONE
    return COSTS[key][1](value) if key in COSTS else text(value)
