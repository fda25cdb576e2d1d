"""Selection of variants by the value of a varied field, or by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.field_paths import Changes, has_field, value_at

VARIANT = "variant"  # not a field: it selects variants by name
SUBJECTS = ("task", "model", "model.mechanism")  # their values have names, which variants are called by
MISSING = object()


def selecting_fields(base: Experiment, variants: Mapping[str, Changes]) -> frozenset[str]:
    """Return the varied fields whose values select variants. The other varied fields can only be set in all variants.

    A field selects if it is a task, a model or a mechanism, or if two variants differ in this field alone. A field that
    always changes together with others, as `train.steps` with the amount of data, does not say what a variant is.

    Args:
        base: the base experiment of the study.
        variants: the changes of each variant, by path.
    """
    varied = dict.fromkeys(path for own in variants.values() for path in own)
    values = [{path: _value(base, own, path) for path in varied} for own in variants.values()]
    found = {path for path in varied if path in SUBJECTS}
    for one, other in combinations(values, 2):
        unlike = [path for path in varied if one[path] is not other[path] and one[path] != other[path]]
        if len(unlike) == 1:
            found.add(unlike[0])
    return frozenset(found)


def set_in_all(override: str, held: Collection[str], having: Sequence[str], every: int) -> str:
    """Return the line that a varied field is set in all variants that have it.

    Args:
        override: the override as text.
        held: the variants that have the field.
        having: the variants that had the value before. The line says how to select them.
        every: the number of variants.
    """
    some = f"the {len(held)} of {every} variants that have this field"
    where = "the only variant" if every == 1 else f"all {every} variants" if len(held) == every else some
    if not having:
        return f"no variant has {override}, so it is set in {where}"
    those = "the one that has" if len(having) == 1 else "those that have"
    return f"{override} is set in {where}; {VARIANT}={','.join(having)} selects {those} it in the file"


def _value(base: Experiment, own: Changes, path: str) -> object:
    """Return the value at a path in a variant, or MISSING if it has no such field."""
    return value_at(base, own, path) if has_field(base, own, path) else MISSING
