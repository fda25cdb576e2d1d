"""Overrides of a study: `model.width=256`, `model.mechanism=linear`, `train.seeds=0,1,2`.

Texts become values first, shallow fields before deeper ones, each read by its own field's annotation. Then
every config is built once, with all of its changes: what only a passing state would violate is not refused.

An override sets a field in every variant, or selects variants: by value, where the study varies the field over that
value, or by name, with `variant=NAME`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from attnlab.lab.draft import VARIANT, WHOLE, Draft
from attnlab.lab.fieldpaths import has_field
from attnlab.lab.reach import reach
from attnlab.lab.study import Study, change
from attnlab.lab.value import annotations, parse
from attnlab.lab.variation import Variation

OWN = ("match", "budget", "margin", "against")  # fields of the study itself


def apply(study: Study, overrides: Sequence[str]) -> Study:
    """The study with each `field=value` put in.

    A field that the study does not vary is set in every variant. Of a field that it varies, an override with a value
    that some variants have keeps those variants; one with any other value sets the field in all variants that have it.
    One below a varied field applies to every variant that has such a field, and to the base, to which others are made
    equal. `variant=NAME` keeps the variant of that name, `variant=A,B` several. Variants that become one experiment are
    merged.

    Another task or another model keeps what it can of the recipe of the one in the file (`attnlab.lab.recipe`); what
    the study varies of that one and the new one has not goes. Overridden fields are no longer changed by `--quick`.
    What was published is no longer shown where the task or the model is another than that of the study, nor are bands
    where anything is that a result hangs on, but for the number of seeds. `match`, `budget`, `margin` and `against=all`
    are the study's own. Its `notes` say, a line each, what a person should know: which variants were kept, merged or
    renamed, what of the recipe was kept, and which attentions a mechanism does not reach.

    Raises ValueError, in one line, for an unknown field, name or variant, a value that does not fit, and a field that
    is given twice.
    """
    given = _split(overrides)
    otherwise = bool({"match", "budget"} & set(given))
    study = replace(study, **{name: _own(name, given.pop(name)) for name in OWN if name in given})
    chosen = given.pop(VARIANT, None)
    # What variants are made equal to stays what the study says.
    follows = study.match is None and study.budget == "steps"
    draft = Draft(study.base, {}, study.vary.variants if study.vary else None, frozenset(given), follows)
    early = chosen is not None and draft.named(chosen) is not None
    if early and chosen:
        draft = draft.choose(chosen)
    for path in sorted(given, key=lambda path: path.count(".")):
        draft = draft.put(path, given[path])
    draft = draft.without_unread().merged()
    if chosen is not None and not early:
        draft = draft.choose(chosen, list(study.vary.variants) if study.vary else [])
    base = _base(study.base, draft)
    quick = study.quick and {path: value for path, value in study.quick.items() if has_field(base, {}, path)}
    vary = None if draft.variants is None else Variation(draft.variants)
    changed = given.keys() - draft.selecting
    other = any(path.partition(".")[0] in WHOLE for path in changed)
    published, bands = (
        ({} if other else study.published),
        ({} if otherwise or changed - {"train.seeds"} else study.bands),
    )
    fixed = study.given | given.keys()
    found = study.keeping(vary, base=base, quick=quick, published=published, bands=bands, given=fixed)
    return replace(found, notes=(*study.notes, *draft.notes, *reach(found, given)))


def _own(name: str, given: str) -> Any:
    if name == "against":
        if given != "all":
            raise ValueError(
                f"against={given!r} must be all: what single variants are compared with stands in the file"
            )
        return given
    try:
        return parse(annotations(Study)[name], given)
    except ValueError as refusal:
        raise ValueError(f"{name}={given!r} {refusal}") from None


def _split(overrides: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for override in overrides:
        path, equals, value = override.partition("=")
        if not equals or not all(path.split(".")):
            raise ValueError(f"{override!r} must be field=value, for example train.steps=500")
        if path in given:
            raise ValueError(f"{path} is given twice: {given[path]!r} and {value!r}")
        given[path] = value
    return given


def _base(base: Any, draft: Draft) -> Any:
    """The base as changed; where it cannot be what was chosen of the variants is, it stays what it was in that."""
    try:
        return change(base, **draft.changes | draft.followed)
    except ValueError:
        with suppress(ValueError):
            return change(base, **draft.changes)
        raise
