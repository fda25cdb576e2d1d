"""How far an override of a mechanism reaches: a model's attentions may have mechanisms of their own. In words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.lab.study.study import Study
from attnlab.registry import field_names

NAMED = 8  # variants in a line, at most
MECHANISM = "model.mechanism"


def override_scope(study: Study, given: Mapping[str, str]) -> list[str]:
    """What a person should know where `model.mechanism` is not that of every attention, a line each.

    `given` are the overrides that made the study, by path. An attention has a mechanism of its own where the model's
    field of its name (`encoder`, `decoder`, `among`, `cross`) is not none: it is left as it is by `model.mechanism=`;
    and where overrides give all of them one, what the study varies serves none.
    """
    left: dict[str, list[str]] = {}
    idle: list[str] = []
    by: dict[str, str] = {}
    for name, experiment in study.variants().items():
        parts = _parts(experiment.model)
        own = [path for path, mechanism in parts.items() if mechanism is not None]
        by |= {path: given[path] for path in own if path in given}
        for path in own:
            if path not in given:
                left.setdefault(path, []).append(name)
        if own and len(own) == len(parts):
            idle.append(name)
    lines = []
    if left and MECHANISM in given:
        alike: dict[str, list[str]] = {}
        for path, names in left.items():
            alike.setdefault(named(names), []).append(path)
        told = "; ".join(f"{' and '.join(paths)} of {names}" for names, paths in alike.items())
        lines.append(f"{MECHANISM}={given[MECHANISM]} leaves as it is: {told}")
    if idle and by and study.vary and MECHANISM in study.vary.fields():
        told = " ".join(f"{path}={text}" for path, text in by.items())
        lines.append(f"{told} leaves nothing to the {MECHANISM} that is varied, in {named(idle)}")
    return lines


def _parts(model: Any) -> dict[str, Any]:
    """The mechanism that each attention of a model has of its own, or None, by its path."""
    fields = field_names(model)
    return {
        f"model.{part}": getattr(model, part) if part in fields else None for part in getattr(model, "attentions", {})
    }


def named(names: Sequence[str]) -> str:
    """Variants by their names, the first of many."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
