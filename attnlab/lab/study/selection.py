"""Which varied fields select variants by their value."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.field_paths import Changes, has_field, value_at

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


def _value(base: Experiment, own: Changes, path: str) -> object:
    """Return the value at a path in a variant, or MISSING if it has no such field."""
    return value_at(base, own, path) if has_field(base, own, path) else MISSING
