"""Overrides of a study: `model.width=256`, `model.mechanism=linear`, `train.seeds=0,1,2`.

Texts become values first, shallow fields before deeper ones, each read by its own field's annotation. Then
every config is built once, with all of its changes: what only a passing state would violate is not refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from types import NoneType
from typing import Any

from attnlab import registry
from attnlab.lab.reach import named, reach
from attnlab.lab.study import Study, change
from attnlab.lab.value import annotations, members, parse, text
from attnlab.lab.variation import Variation

Changes = dict[str, Any]  # path → value
OWN = ("match", "budget", "margin")  # fields of the study itself


def apply(study: Study, overrides: Sequence[str]) -> Study:
    """The study with each `field=value` put in.

    An override of a field that the study varies keeps the variants with that value; one below it applies to every
    variant that has the field, and to the base, to which others are made equal. Overridden fields are no longer changed
    by `--quick`. What was published is no longer shown where the task or the model is another than that of the study,
    nor are bands where anything is that a result hangs on, but for the number of seeds. `match`, `budget` and `margin`
    are the study's own. Its `notes` say which variants were kept where others were left out, which became one or have
    another name, what another task or model has otherwise than the study's, and which attentions a mechanism does not
    reach.

    Raises ValueError, in one line, for an unknown field or name, a value that does not fit, and a field that
    is given twice.
    """
    given = _split(overrides)
    otherwise = bool({"match", "budget"} & set(given))
    study = replace(study, **{name: _own(name, given.pop(name)) for name in OWN if name in given})
    # What variants are made equal to stays what the study says.
    follows = study.match is None and study.budget == "steps"
    draft = _Draft(study.base, {}, study.vary.variants if study.vary else None, follows)
    for path in sorted(given, key=lambda path: path.count(".")):
        draft = draft.put(path, given[path])
    base = _base(study.base, draft)
    quick = study.quick and {path: value for path, value in study.quick.items() if _has(base, {}, path)}
    vary = None if draft.variants is None else Variation(draft.variants)
    varied = study.vary.fields() if study.vary else []
    changed = {path for path in given if path not in varied}
    other = any(path.partition(".")[0] in ("task", "model") for path in changed)
    published, bands = (
        ({} if other else study.published),
        ({} if otherwise or changed - {"train.seeds"} else study.bands),
    )
    fixed = study.given | given.keys()
    found = study.keeping(vary, base=base, quick=quick, published=published, bands=bands, given=fixed)
    told = (*draft.notes, *_otherwise(study.base, draft, given), *reach(found, given))
    return replace(found, notes=(*study.notes, *told))


def _own(name: str, given: str) -> Any:
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


def _base(base: Any, draft: _Draft) -> Any:
    """The base as changed; where it cannot be what was chosen of the variants is, it stays what it was in that."""
    try:
        return change(base, **draft.changes | draft.followed)
    except ValueError:
        with suppress(ValueError):
            return change(base, **draft.changes)
        raise


def _otherwise(base: Any, draft: _Draft, given: dict[str, str]) -> list[str]:
    """What the study had set of the value that stood in a field, and the one now in its place has otherwise."""
    lines = []
    for path, new in draft.changes.items():
        old: Any = _look(base, {}, path) if _has(base, {}, path) else None
        if registry.find(old) is None or registry.find(new) is None or type(old) is type(new):
            continue
        both = [name for name in registry.field_names(old) if name in registry.field_names(new)]
        defaults = {each.name: each.default for each in fields(type(old))}
        told = [
            f"{name} {text(getattr(new, name))}, not {text(getattr(old, name))}"
            for name in both
            if f"{path}.{name}" not in given and getattr(old, name) not in (defaults[name], getattr(new, name))
        ]
        lines += [f"{path}={given[path]} has its own {', '.join(told)}"] if told else []
    return lines


@dataclass(frozen=True)
class _Draft:
    """A study on its way: its base, what changes in it, and what changes besides in each variant."""

    base: Any
    changes: Changes
    variants: dict[str, Changes] | None
    follows: bool = True  # whether the base takes the value of variants that are chosen
    followed: Changes = field(default_factory=dict)  # what the base takes of them
    notes: tuple[str, ...] = ()

    def put(self, path: str, given: str) -> _Draft:
        """One override, on the base or on what the study varies."""
        varied = {varied for changes in (self.variants or {}).values() for varied in changes}
        if path in varied:
            return self.keep(path, given)
        if any(path.startswith(f"{upper}.") for upper in varied):
            return self.put_below(path, given)
        return replace(self, changes=self.changes | {path: _value(self.base, self.changes, path, given)})

    def keep(self, path: str, given: str) -> _Draft:
        """Only the variants with that value; a value of a registry that none has becomes the one variant."""
        variants = {name: own for name, own in self.seen().items() if _has(self.base, own, path)}
        held = {name: _look(self.base, own, path) for name, own in variants.items()}
        names = self.matching(held, path, given)
        if not names:
            return self.replace_all(path, given, held)
        kept = {name: own for name, own in (self.variants or {}).items() if name in names}
        values = [held[name] for name in names]
        # The base follows where it can: it is checked too, and its own value is one that nobody asked for.
        follows = self.follows and _has(self.base, self.changes, path) and all(value == values[0] for value in values)
        draft = replace(self, variants=kept, followed=self.followed | ({path: values[0]} if follows else {}))
        if len(kept) == (every := len(self.variants or {})):
            return draft
        inside = [name for name in held if name not in kept and _holds(held[name], values)]
        but = f"; not {named(inside)}, where it stands inside another" if inside else ""
        return draft.noting(f"{path}={given} selects {len(kept)} of {every} variants: {named(names)}{but}")

    def matching(self, held: Changes, path: str, given: str) -> list[str]:
        """The variants meant: those with the very value, else the one so named, else those of that class."""
        with suppress(ValueError):
            value = _value(self.base, self.seen()[next(iter(held))], path, given)
            if same := [name for name in held if held[name] == value]:
                return same
        if given in held:
            return [given]
        return [name for name in held if (found := registry.find(held[name])) and found[1] == given]

    def replace_all(self, path: str, given: str, held: Changes) -> _Draft:
        """The field no longer varies: it has that value. Variants that were apart in nothing else become one."""
        value = _value(self.base, self.seen()[next(iter(held))], path, given)
        if not registry.find(value):
            values = ", ".join(dict.fromkeys(map(text, held.values())))
            raise ValueError(f"{path}={given!r}: the study varies this field over {values}; choose among them")
        rests: dict[str, Changes] = {}
        for name in held:
            rest = {other: new for other, new in (self.variants or {})[name].items() if other != path}
            if rest not in rests.values():
                rests[name] = rest
        renamed = {name: _renamed(name, held[name], given) or f"{given}-{name}" for name in rests}
        called = {name: renamed[name] if rest else given for name, rest in rests.items()}
        if len({*called.values()}) < len(called):
            called = {name: "-".join([given, *map(text, rest.values())]) for name, rest in rests.items()}
        variants = {called[name]: rest | {path: value} for name, rest in rests.items()}
        draft = replace(self, variants=variants, followed=self.followed | ({path: value} if self.follows else {}))
        every, left = len(self.variants or {}), f"{len(variants)}: {named(list(variants))}"
        each = "each" if len(held) == every else f"the {len(held)} that have the field"
        told = f"{path}={given} is the value of none of {every} variants; put into {each}, it leaves {left}"
        if inner := next((found for found in map(_inner, held.values()) if found), None):
            told += f"; what stood there was around another: {path}.{inner}={given} changes that one alone"
        return draft.noting(told)

    def put_below(self, path: str, given: str) -> _Draft:
        """The value in every variant that has the field, and in the base."""
        having = [name for name, own in self.seen().items() if _has(self.base, own, path)]
        based = self.changes | self.followed
        # What variants are made equal to may have the field though none of them has.
        alone = not having and not self.follows and _has(self.base, based, path)
        if not having and not alone:
            raise ValueError(self.none_has(path))
        values = {name: _value(self.base, self.seen()[name], path, given) for name in having}
        follows = {path: _value(self.base, based, path, given)} if _has(self.base, based, path) else {}
        draft = self.noting(f"{path}={given} reaches no variant, only what they are made equal to") if alone else self
        old = {name: _look(self.base, self.seen()[name], path) for name in having}
        variants = {name: own | ({path: values[name]} if name in values else {}) for name, own in self.each()}
        return replace(draft, followed=self.followed | follows, variants=variants).called_anew(path, given, old)

    def called_anew(self, path: str, given: str, old: Changes) -> _Draft:
        """The same after a value below a varied field was put in: variants that came to be one experiment are one, and
        who was called by the value that stood there is called by the new one.
        """
        made, twins = {}, {}
        for name, own in self.each():
            # What a passing state forbids is told apart from all others.
            with suppress(ValueError):
                made[name] = change(self.base, **self.changes | own)
            first = next((one for one in twins if name in made and made.get(one) == made[name]), name)
            twins.setdefault(first, []).append(name)
        called = {name: (name in old and _renamed(name, old[name], given)) or name for name in twins}
        if len({*called.values()}) < len(called):
            called = {name: name for name in twins}
        told = [
            f"{named(names)} {'is' if len(names) == 1 else 'are'} {called[first]}"
            for first, names in twins.items()
            if names != [called[first]]
        ]
        variants = {called[name]: own for name, own in self.each() if name in called}
        return replace(self, variants=variants).noting(f"{path}={given}: {'; '.join(told)} now") if told else self

    def none_has(self, path: str) -> str:
        """The complaint that no variant has such a field, with those that they have."""
        upper, _, name = path.rpartition(".")
        holders = [_look(self.base, own, upper) for own in self.seen().values() if _has(self.base, own, upper)]
        known = dict.fromkeys(field for holder in holders for field in registry.field_names(holder))
        return registry.unknown(f"{path}: no variant has a field {name!r} there", name, known)

    def noting(self, note: str) -> _Draft:
        """The same, and a line that a person should read."""
        return replace(self, notes=(*self.notes, note))

    def each(self) -> list[tuple[str, Changes]]:
        """The variants, by their names."""
        return list((self.variants or {}).items())

    def seen(self) -> dict[str, Changes]:
        """All that changes in each variant."""
        return {name: self.changes | own for name, own in (self.variants or {}).items()}


def _look(base: Any, changes: Changes, path: str) -> Any:
    """The value at a path, changes counted in. Raises ValueError where there is no such field."""
    names = path.split(".")
    uppers = [".".join(names[:depth]) for depth in range(len(names), 0, -1)]
    changed = next((upper for upper in uppers if upper in changes), None)
    value = base if changed is None else changes[changed]
    for depth in range(changed.count(".") + 1 if changed else 0, len(names)):
        name = names[depth]
        if name not in registry.field_names(value):
            raise ValueError(registry.no_field(value, name, ".".join(names[: depth + 1])))
        value = getattr(value, name)
    return value


def _renamed(name: str, value: Any, given: str) -> str | None:
    """What a variant is called whose value becomes the one of that name; None where neither the value nor what stands
    in it gave it its name.
    """
    inner = _inner(value)
    for each in (value, getattr(value, inner) if inner else None):
        if (found := registry.find(each)) and found[1] in name:
            return name.replace(found[1], given)
    return None


def _inner(value: Any) -> str | None:
    """The field of a value in which another of its registry stands."""
    here = registry.find(value)
    inside = ((name, registry.find(getattr(value, name))) for name in registry.field_names(value))
    return next((name for name, found in inside if here and found and found[0] == here[0]), None)


def _holds(value: Any, wanted: list[Any]) -> bool:
    """Whether one of those wanted stands in a field of a value, or in one further below."""
    fields = [getattr(value, name) for name in registry.field_names(value)]
    return any(each in wanted or _holds(each, wanted) for each in fields)


def _has(base: Any, changes: Changes, path: str) -> bool:
    with suppress(ValueError):
        _look(base, changes, path)
        return True
    return False


def _value(base: Any, changes: Changes, path: str, given: str) -> Any:
    """The value that a text stands for in the field at a path."""
    current = _look(base, changes, path)
    upper, _, name = path.rpartition(".")
    allowed = annotations(type(_look(base, changes, upper) if upper else base)).get(name, Any)
    if allowed in (Any, object):
        # The value that is there tells what its annotation leaves open.
        allowed = type(current)
    kinds = members(allowed)
    place = registry.home(current, name, kinds)
    if place is None:
        try:
            return parse(allowed, given)
        except ValueError as refusal:
            raise ValueError(f"{path}={given!r} {refusal}") from None
    if given.lower() == "none" and NoneType in kinds and "none" not in registry.table(place):
        return None
    return registry.pick(registry.table(place), given, path)
