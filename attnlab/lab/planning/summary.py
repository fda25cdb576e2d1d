"""A study in words: every field with what varies marked, and what each variant costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from attnlab import registry
from attnlab.console.escape import plain
from attnlab.console.format import NONE, count, large
from attnlab.console.tables import columns
from attnlab.lab.study.study import Experiment, Study, check_study, warmups
from attnlab.lab.study.values import text
from attnlab.system.settings import check

if TYPE_CHECKING:
    from attnlab.lab.planning.matching import Matched

DIFFERS = "≠"


class Words(str):
    """Text that a notebook shows as it reads."""

    def __repr__(self) -> str:
        return str(self)


def show(study: Study, roofline: bool = False) -> Words:
    """A study's fields and what each variant costs; `roofline`: and what bounds each of its operations here.

    Nothing is trained. Raises ValueError for a match or a budget that cannot be met, DataError for data that cannot be
    had.
    """
    from attnlab.lab.planning.helper import MANY, helper

    check_study(study)
    with helper() if len(study.variants()) >= MANY else nullcontext() as process:
        return counted(study, roofline, process)


def counted(study: Study, roofline: bool, process: Any) -> Words:
    """What `show` answers, where a `helper` of `counting` may be at work already."""
    from attnlab.lab.planning.costs import describe
    from attnlab.lab.planning.helper import helped
    from attnlab.lab.planning.ledger import Ledger
    from attnlab.lab.planning.matching import matched
    from attnlab.lab.planning.plan import check_steps

    check()
    ledger = Ledger()
    with helped(ledger, process):
        found = matched(study, ledger)
        rows = describe(study, found)
    notes: dict[str, None] = {}
    for experiment in found.experiments.values():
        problem = ledger.problem(experiment)
        check_steps(problem, experiment.train)
        notes |= dict.fromkeys(problem.notes)
    # Both before either is told: what cannot work gives one line and nothing else.
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
    """A line for every field of the study; where variants differ it is marked, with a line for each.

    A study that is matched, or has a budget, is shown as it is to run, under its notes and what was changed for that.
    `found` is what `matched` answered; None: it is asked.
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
        told = {name: fields[path] for name, fields in variants.items() if path in fields}
        if len(told) == len(variants) and len(set(told.values())) == 1:
            lines.append(f"  {path:<{wide}}  {next(iter(told.values()))}")
            continue
        for n, (name, value) in enumerate(told.items()):
            left = f"{DIFFERS} {path:<{wide}}" if n == 0 else " " * (wide + 2)
            lines.append(f"{left}  {name + ':':<{names + 1}} {value}")
    return [plain(line) for line in lines]


def _matched(study: Study) -> Matched:
    # Counting costs imports jax; what only reads a study's fields does not.
    from attnlab.lab.planning.ledger import Ledger
    from attnlab.lab.planning.matching import matched

    return matched(study, Ledger())


def flat(experiment: Experiment) -> dict[str, str]:
    """Every field by its dotted path, as text; what is in a registry by its name, then its own fields."""
    return dict(_flat(experiment, ()))


def _flat(config: Any, path: tuple[str, ...]):
    if path and (not is_dataclass(config) or registry.home(config, path[-1])):
        yield ".".join(path), text(config)
    for name in registry.field_names(config):
        yield from _flat(getattr(config, name), (*path, name))


def _merged(variants: Iterable[dict[str, str]]) -> list[str]:
    """All paths, those below one another together: what one variant alone has stands where it belongs."""
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
    """How many variants and lanes; where all have as many seeds and rates, how many of these."""
    trains = [experiment.train for experiment in experiments.values()]
    first, total = _plural(len(trains), "variant"), _plural(sum(len(train.lanes) for train in trains), "lane")
    if len(kinds := {(len(train.seed_list), len(train.rates)) for train in trains}) > 1:
        return f"{first}, {total}"
    ((seeds, rates),) = kinds
    return f"{first} × {_plural(seeds, 'seed')} × {_plural(rates, 'learning rate')} = {total}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# What a cost is called and how it is written. Others are shown by their own name, as they are.
COSTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "parameters": ("parameters", count),
    "flops": ("FLOPs a step", lambda number: large(number, "FLOP")),
    "state_bytes": ("decoding state", lambda number: large(number, "B")),
    "memory": ("weights and optimiser", lambda number: large(number, "B")),
    "lanes": ("lanes", count),
    "steps": ("steps", count),
    "training": ("FLOPs, all lanes", lambda number: large(number, "FLOP")),
}


def costs(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A table of what each variant costs, from rows of one dict each."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    heads = [COSTS[key][0] if key in COSTS else key.replace("_", " ") for key in keys]
    return columns([heads, *[[_cost(key, row.get(key)) for key in keys] for row in rows]], right=True)


def summed(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What training all of several variants costs."""
    return [f"all {len(rows)}: {large(sum(row['training'] for row in rows), 'FLOP')}"] if len(rows) > 1 else []


def _cost(key: str, value: Any) -> str:
    if value is None:
        return NONE
    return COSTS[key][1](value) if key in COSTS else text(value)
