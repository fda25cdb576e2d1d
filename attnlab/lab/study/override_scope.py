"""The scope of an override of `model.mechanism`, in words. Attentions of a model may have their own mechanisms."""

from __future__ import annotations

from collections.abc import Mapping

from attnlab.console.format import listing
from attnlab.lab.study.study import Study
from attnlab.registry import field_names

MECHANISM = "model.mechanism"


def override_scope(study: Study, given: Mapping[str, str]) -> list[str]:
    """Report which attentions `model.mechanism` does not apply to.

    An attention has its own mechanism if the model's field of its name (`encoder`, `decoder`, `query_attention`,
    `cross`) is not None. `model.mechanism=` leaves it unchanged. If overrides give every attention its own mechanism, a
    varied `model.mechanism` has no effect.

    Args:
        study: the study after overrides.
        given: the overrides, by path.

    Returns:
        Notes, one line each.
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
            alike.setdefault(listing(names), []).append(path)
        parts = "; ".join(f"{' and '.join(paths)} of {names}" for names, paths in alike.items())
        lines.append(f"{MECHANISM}={given[MECHANISM]} does not change: {parts}")
    if idle and by and study.vary and MECHANISM in study.vary.fields():
        overrides = " ".join(f"{path}={text}" for path, text in by.items())
        lines.append(f"with {overrides}, the varied {MECHANISM} has no effect in {listing(idle)}")
    return lines


def _parts(model: object) -> dict[str, object]:
    """Return the mechanism of each attention's own field, or None if it uses `model.mechanism`, by path."""
    fields = field_names(model)
    return {
        f"model.{part}": getattr(model, part) if part in fields else None for part in getattr(model, "attentions", {})
    }
