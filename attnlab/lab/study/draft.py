"""The state of a study while overrides are applied one after the other (`attnlab.lab.study.overrides`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace

from attnlab import registry
from attnlab.console.format import listing
from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.field_paths import (
    Changes,
    contains,
    has_field,
    no_variant_has,
    read_fitting,
    read_value,
    takes_field,
    value_at,
    wrapped_field,
)
from attnlab.lab.study.recipe import inherit_noted
from attnlab.lab.study.renaming import Label, Override, label, label_below, names_of, renamed, says
from attnlab.lab.study.selection import VARIANT, set_in_all
from attnlab.lab.study.study import change
from attnlab.tasks.base.task import Task

WHOLE = ("task", "model")  # fields that are replaced as a whole and inherit the recipe of the old value


@dataclass(frozen=True)
class Draft:
    """A study while overrides are applied. Each method returns a changed copy."""

    base: Experiment
    """The base experiment, before changes."""
    changes: Changes
    """The changes of the base and of every variant, by path."""
    variants: dict[str, Changes] | None
    """The further changes of each variant, or None for a study without variants."""
    given: frozenset[str]
    """The paths that overrides set."""
    selective: frozenset[str] = frozenset()
    """The varied fields whose values select variants (`selecting_fields`)."""
    follows: bool = True
    """Whether the base takes the values of selected variants. It does not if variants are matched to it."""
    followed: Changes = field(default_factory=dict)
    """The changes that the base takes from selected variants."""
    selecting: frozenset[str] = frozenset()
    """The overrides that only selected among the variants."""
    labels: tuple[Label, ...] = ()
    """The values for the names that `merged` gives."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The name of each variant before it was merged or renamed, with its name afterwards."""
    notes: tuple[str, ...] = ()
    """Notes on what the overrides changed, one line each."""

    def named(self, chosen: str) -> list[str] | None:
        """Return the variants named by a name or a comma-separated list, or None if one is unknown."""
        known = list(self.variants or {"base": {}})
        names = [chosen] if chosen in known else chosen.split(",")
        return [name for name in known if name in names] if {*names} <= {*known} else None

    def choose(self, chosen: str, more: Sequence[str] = ()) -> Draft:
        """Keep only the variants of a name or a comma-separated list.

        Args:
            chosen: the names.
            more: further names for the hint in the error.

        Raises:
            ValueError: if no variant has one of the names.
        """
        known = dict.fromkeys([*(self.variants or {"base": {}}), *more])
        if (names := self.named(chosen)) is None:
            lost = next(name for name in chosen.split(",") if name not in known or chosen in known)
            raise ValueError(registry.unknown(f"{VARIANT}={lost!r} is not known", lost, known))
        if self.variants is None:
            return self
        return self.only(names, {path for name in names for path in self.variants[name]})

    def put(self, path: str, given: str) -> Draft:
        """Apply one override, either to the base or to what the study varies."""
        varied = self.varied()
        if path in varied:
            return self.put_varied(path, given)
        if any(path.startswith(f"{upper}.") for upper in varied):
            return self.put_below(path, given)
        value = read_value(self.base, self.changes, path, given)
        found = self.renaming(path, given, dict.fromkeys(self.variants or {}, value))
        if path in WHOLE:
            value, found = found.inheriting(path, given, value)
            found = found.without_below(path, given, value)
        return replace(found, changes=found.changes | {path: value})

    def put_varied(self, path: str, given: str) -> Draft:
        """Select the variants with that value, or set it in all variants that have the field.

        It is set if no variant has the value, or if the values of the field do not select (`selecting_fields`).
        """
        held = {
            name: value_at(self.base, own, path) for name, own in self.seen().items() if has_field(self.base, own, path)
        }
        names, every = self.matching(held, path, given), len(self.variants or {})
        if not names or (len(names) < every and path not in self.selective):
            return self.set_all(path, given, held, names)
        draft = replace(self.only(names, {path}), selecting=self.selecting | {path})
        if len(names) == every:
            return draft
        values = [held[name] for name in names if registry.find(held[name])]
        inside = [name for name in held if name not in names and contains(held[name], values)]
        other = f", but not {listing(inside)}, where another value wraps it" if inside else ""
        exact = f"; {VARIANT}={given} selects only that one" if len(names) > 1 and given in names else ""
        return draft.noting(f"{path}={given} selects {len(names)} of {every} variants: {listing(names)}{other}{exact}")

    def matching(self, held: Changes, path: str, given: str) -> list[str]:
        """Return the variants with exactly that value, or else those whose value has that registered name."""
        with suppress(ValueError):
            seen = {name: own for name, own in self.seen().items() if name in held}
            if same := [n for n, value in read_fitting(self.base, seen, path, given).items() if held[n] == value]:
                return same
        return [name for name in held if (found := registry.find(held[name])) and found[1] == given]

    def only(self, names: Sequence[str], paths: Set[str]) -> Draft:
        """Keep only these variants, and let the base take the value that they share at each of the paths.

        The base is checked like a variant, so its own value at these paths should not cause an error.
        """
        seen = {name: own for name, own in self.seen().items() if name in names}
        followed = dict(self.followed)
        for path in paths if self.follows else ():
            values = [value_at(self.base, own, path) for own in seen.values() if has_field(self.base, own, path)]
            alike = len(values) == len(seen) and values.count(values[0]) == len(values)
            if alike and has_field(self.base, self.changes, path):
                followed[path] = values[0]
        kept = {name: own for name, own in self.each() if name in names}
        return replace(self, variants=kept, followed=followed)

    def set_all(self, path: str, given: str, held: Changes, having: Sequence[str] = ()) -> Draft:
        """Set the field to one value in every variant that has it, so that it no longer varies. The others are kept.

        Args:
            path: the path of the field.
            given: the value as text.
            held: the present value of each variant that has the field.
            having: the variants that have the value already. The note says how to select them.
        """
        value = self.legal(path, given, next(iter(having or held)), known=bool(having))
        found = self
        if path in WHOLE:
            value, found = self.inheriting(path, given, value)
        variants = dict(self.variants or {})
        for name, old in held.items():
            fits = lambda each, old=old: not each.startswith(f"{path}.") or takes_field(old, value, path, each)
            variants[name] = {each: new for each, new in variants[name].items() if fits(each)} | {path: value}
        base = self.follows or path.partition(".")[0] != "model"
        followed = found.followed | ({path: value} if base and has_field(self.base, self.changes, path) else {})
        note = set_in_all(f"{path}={given}", held, having, len(self.variants or {}))
        if inner := next((found for found in map(wrapped_field, held.values()) if found), None):
            note += (
                f"; this replaces a value that wraps another, and {path}.{inner}={given} changes only the wrapped one"
            )
        wrong = {name for name in held if held[name] != value}
        if registry.find(value) is None:
            owned = wrong & {name for name, own in self.each() if path in own}
            subject = path in self.selective or not path.startswith("train.")
            wrong = {name for name in owned if subject or says(name, held[name])}
        labels = (*self.labels, label(held, Override(path, given), value, wrong))
        draft = replace(found, variants=variants, followed=followed, labels=labels)
        return draft.noting(note)

    def renaming(self, path: str, given: str, values: Mapping[str, object]) -> Draft:
        """Return the draft with a label for a field below another, with its value in each variant that has it."""
        found = label_below(self.base, self.seen(), self.variants or {}, self.labels, Override(path, given), values)
        return self if found is None else replace(self, labels=(*self.labels, found))

    def legal(self, path: str, given: str, holder: str, *, known: bool) -> object:
        """Parse the value for a varied field. Raises ValueError, with a hint at variants of that name.

        Args:
            path: the path of the field.
            given: the value as text.
            holder: a variant that has the field.
            known: whether some variants have the value, so that it cannot mean another variant.
        """
        meant = [name for name in self.variants or {} if name == given or f"-{given}-" in f"-{name}-"]
        hint = f"{VARIANT}={','.join(meant)} selects {'the variants' if len(meant) > 1 else 'the variant'} of that name"
        try:
            value = read_value(self.base, self.seen()[holder], path, given)
        except ValueError as refusal:
            raise ValueError(f"{refusal}; {hint}" if meant else str(refusal)) from None
        # The text is a registered name and also the name of a variant with another value, so it is ambiguous.
        if meant and registry.find(value) and not known:
            raise ValueError(f"no variant has {path}={given}; {hint}")
        return value

    def inheriting(self, path: str, given: str, value: object) -> tuple[object, Draft]:
        """Let a new task or model inherit the base's recipe. Returns it, and the draft with a note."""
        old = value_at(self.base, self.changes, path)
        # A field inside a value of the recipe changes the inherited value, for example task.units.size.
        set_below = frozenset(
            each.split(".")[1]
            for each in self.given
            if each.startswith(f"{path}.") and (each.count(".") == 1 or not has_field(self.base, self.changes, each))
        )
        config, note = inherit_noted(old, value, f"{path}={given}", set_below)
        return config, self.noting(note) if note else self

    def without_below(self, path: str, given: str, new: object) -> Draft:
        """Return the draft without the varied fields below a path that the new value at the path does not have."""
        old = value_at(self.base, self.changes, path)
        varied = [each for each in self.varied() if each.startswith(f"{path}.")]
        gone = [each for each in varied if not takes_field(old, new, path, each)]
        if path == "model" and (kept := [each for each in varied if each not in gone]):
            self = self.noting(f"with {path}={given} the variants still set {', '.join(kept)}")
        if not gone:
            return self
        variants = {name: {each: value for each, value in own.items() if each not in gone} for name, own in self.each()}
        labels = (*self.labels, Label(frozenset(variants), "", given, path=path))
        draft = replace(self, variants=variants, labels=labels)
        return draft.noting(f"with {path}={given} the study no longer varies {', '.join(gone)}")

    def put_below(self, path: str, given: str) -> Draft:
        """Set a field below a varied field, in every variant that has it and in the base."""
        having = {name: own for name, own in self.seen().items() if has_field(self.base, own, path)}
        based, base = self.changes | self.followed, {}
        if has_field(self.base, based, path):
            with suppress(ValueError) if having else nullcontext():
                base[path] = read_value(self.base, based, path, given)
        # The base to which variants are matched may have the field although no variant has it.
        if not having and (self.follows or not base):
            raise ValueError(no_variant_has(self.base, list(self.seen().values()), path))
        values = read_fitting(self.base, having, path, given)
        note = "" if having else f"{path}={given} changes no variant, only the base that they are matched to"
        if others := [name for name in having if name not in values]:
            note = f"{path}={given} is set in {listing([*values])}; it is no value of this field in {listing(others)}"
        draft = self.noting(note) if note else self
        variants = {name: own | ({path: values[name]} if name in values else {}) for name, own in self.each()}
        return replace(draft.renaming(path, given, values), followed=self.followed | base, variants=variants)

    def without_unread(self) -> Draft:
        """Reset fields that the task does not read, given its other fields (`Task.unread`), and do not vary them."""
        tasks = [experiment.task for experiment in self.made().values()]
        unread = [task.unread if isinstance(task, Task) else {} for task in tasks]
        if not unread or any(each != unread[0] for each in unread):
            return self
        idle = {f"task.{name}": value for name, value in unread[0].items() if f"task.{name}" not in self.given}
        if not (varied := [path for path in idle if path in self.varied()]):
            return replace(self, changes=self.changes | idle)
        variants = {name: {path: value for path, value in own.items() if path not in idle} for name, own in self.each()}
        labels = (*self.labels, Label(frozenset(variants), "", "own"))
        draft = replace(self, changes=self.changes | idle, variants=variants, labels=labels)
        return draft.noting(f"with only your own files the study no longer varies {', '.join(varied)}")

    def merged(self) -> Draft:
        """Merge variants that have become the same experiment, and name them by the values that overrides set."""
        if self.variants is None or not self.labels:
            return self
        made, groups = self.made(), []
        for name in self.variants:
            twin = next((group for group in groups if name in made and made.get(group[0]) == made[name]), None)
            if twin is None:
                groups.append([name])
            else:
                twin.append(name)
        called = names_of(groups, self.labels, any(self.variants.values()))
        variants = {new: self.variants[group[0]] for new, group in zip(called, groups, strict=True)}
        notes = renamed(dict(zip(called, groups, strict=True)))
        names = {old: new for new, group in zip(called, groups, strict=True) for old in group}
        return replace(self, variants=variants, names=names, notes=(*self.notes, *notes), labels=())

    def made(self) -> dict[str, Experiment]:
        """Return the experiments of the variants. Refused ones are left out, because the study reports them later."""
        made: dict[str, Experiment] = {}
        for name, own in (self.variants or {"base": {}}).items():
            with suppress(ValueError):
                made[name] = change(self.base, **self.changes | own)
        return made

    def noting(self, note: str) -> Draft:
        """Return the draft with a note added."""
        return replace(self, notes=(*self.notes, note))

    def varied(self) -> list[str]:
        """Return the paths that variants set."""
        return list(dict.fromkeys(path for own in (self.variants or {}).values() for path in own))

    def each(self) -> list[tuple[str, Changes]]:
        """Return the variants as (name, changes) pairs."""
        return list((self.variants or {}).items())

    def seen(self) -> dict[str, Changes]:
        """Return all changes of each variant, including those of the base."""
        return {name: self.changes | own for name, own in (self.variants or {}).items()}
