"""Overrides of a study: `model.width=256`, `model.mechanism=linear`, `train.seeds=0,1,2`.

Texts are first parsed into values by the annotations of their fields, shallow fields before deeper ones. Then every
config is built once with all its changes, so that an invalid intermediate combination is not refused.

An override either sets a field in every variant or selects variants. It selects by value if the study is about the
field (`attnlab.lab.study.selection`) and some variants have that value, and by name as `variant=NAME`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from attnlab.lab.study.draft import WHOLE, Draft
from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.field_paths import has_field
from attnlab.lab.study.override_scope import override_scope
from attnlab.lab.study.selection import VARIANT, selecting_fields
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.values import annotations, parse
from attnlab.lab.study.variation import Variation

OWN = ("match", "budget", "margin", "against")  # fields of the study itself


def apply(study: Study, overrides: Sequence[str]) -> Study:
    """Return the study with overrides applied.

    - A field that the study does not vary is set in every variant.
    - If the study varies the task, the model, the mechanism, or a field in which alone two variants differ, a value
      that some variants have selects those variants. Any other value is set in all variants that have the field.
    - A field that the study varies only together with others is set in all variants that have it.
    - A field below a varied field is set in every variant that has it, and in the base to which others are matched.
    - `variant=NAME` selects one variant, `variant=A,B` several.
    - `match`, `budget`, `margin` and `against=all` set fields of the study itself.

    Variants that become the same experiment are merged. A new task or model keeps what it can of the recipe of the one
    in the file (`attnlab.lab.study.recipe`). Variations of fields that the new one does not have are dropped.

    `--quick` no longer changes overridden fields. Published values are dropped if the task or the model changes. Bands
    are dropped if anything but the number of seeds changes.

    Args:
        study: the study of an experiment file.
        overrides: texts of the form `field=value`, for example "train.steps=500".

    Returns:
        The changed study. Its `notes` report, one line each, which variants were kept, merged or renamed, what of the
        recipe was kept, and which attentions `model.mechanism` leaves unchanged.

    Raises:
        ValueError: in one line, for an unknown field, name or variant, a value that does not fit, or a field that is
            given twice.
    """
    given = _split(overrides)
    otherwise = bool({"match", "budget"} & set(given))
    study = replace(study, **{name: _own(name, given.pop(name)) for name in OWN if name in given})
    chosen = given.pop(VARIANT, None)
    # With a match or a budget the base is the reference of all variants, so selecting variants must not change it.
    follows = study.match is None and study.budget == "steps"
    variants = study.vary.variants if study.vary else None
    draft = Draft(study.base, {}, variants, frozenset(given), selecting_fields(study.base, variants or {}), follows)
    early = chosen is not None and draft.named(chosen) is not None
    if early and chosen:
        draft = draft.choose(chosen)
    for path in sorted(given, key=lambda path: path.count(".")):
        draft = draft.put(path, given[path])
    draft = draft.without_unread().merged()
    if chosen is not None and not early:
        draft = draft.choose(chosen, list(variants or {}))
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
    kept = {"quick": quick, "published": published, "bands": bands, "given": fixed}
    found = study.keeping(vary, draft.names, base=base, **kept)
    if tasks := {path: given[path] for path in changed if path.partition(".")[0] == "task"}:
        # The variants that are not kept would be trained on this task, too.
        only_these = chosen is None and tasks.keys() == given.keys()
        whole = found if only_these else _whole(study, tasks)
        found = replace(found, part_of=replace(whole, part_of=study.part_of or study))
    return replace(found, notes=(*study.notes, *draft.notes, *override_scope(found, given)))


def _whole(study: Study, tasks: Mapping[str, str]) -> Study:
    """Return the whole study with overrides of its task, or unchanged if they cannot be made in all variants."""
    with suppress(ValueError):
        found = apply(study, [f"{path}={value}" for path, value in tasks.items()])
        if found.part_of is not None and found.part_of.variants().keys() == found.variants().keys():
            return found
    return study.part_of or study


def _own(name: str, given: str) -> object:
    """Parse the value of a field of the study itself."""
    if name == "against":
        if given != "all":
            raise ValueError(
                f"against={given!r} must be all; set the comparisons of single variants in the experiment file"
            )
        return given
    try:
        return parse(annotations(Study)[name], given)
    except ValueError as refusal:
        raise ValueError(f"{name}={given!r} {refusal}") from None


def _split(overrides: Sequence[str]) -> dict[str, str]:
    """Split `field=value` texts into a dict. Raises ValueError for a malformed or repeated one."""
    given: dict[str, str] = {}
    for override in overrides:
        path, equals, value = override.partition("=")
        if not equals or not all(path.split(".")):
            raise ValueError(f"{override!r} must be field=value, for example train.steps=500")
        if path in given:
            raise ValueError(f"{path} is given twice: {given[path]!r} and {value!r}")
        given[path] = value
    return given


def _base(base: Experiment, draft: Draft) -> Experiment:
    """Return the changed base. If it cannot take the values of the selected variants, they are left out."""
    try:
        return change(base, **draft.changes | draft.followed)
    except ValueError:
        with suppress(ValueError):
            return change(base, **draft.changes)
        raise
