"""Inheritance of settings, if an override replaces the task or the model of an experiment file."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from attnlab import registry
from attnlab.lab.study.values import annotations, fits, text
from attnlab.tasks.base.task import Task

UNITS: tuple[str, ...] = ("units", "target_units")  # the fields of `Parallel` that correspond to `Task.fixed_units`


@dataclass(frozen=True)
class Inherited:
    """A new config that has inherited the recipe of an old one."""

    config: Any
    """The new config, with the inherited fields."""
    kept: tuple[str, ...]
    """The names of the fields that were inherited."""
    lost: tuple[str, ...]
    """The names of the recipe's fields that could not be inherited."""


def inherit(old: object, new: object, skip: frozenset[str] = frozenset()) -> Inherited:
    """Let the config `new` inherit what it can of the recipe of `old`.

    The recipe is every field that `old` sets to another value than the default of its class. A task that reads your own
    files, which has a field `train`, has no recipe of its own. It therefore also inherits the fields that concern only
    training (`Task.training_only_fields`), even if `old` has them at their defaults. A field is inherited if `new` has
    one of the same name and type and leaves it at its default.

    A task of your own pairs also inherits the units of `Task.fixed_units`. Those of targets are lost if they differ
    from those of sources, because they suit only targets of that kind, for example phones.

    Args:
        old: the config that is replaced.
        new: the config that replaces it.
        skip: fields that are not inherited, because a person sets them.

    Returns:
        The new config, with the names of the fields that were kept and lost.
    """
    defaults = _defaults(old)
    unlike = [name for name in registry.field_names(old) if getattr(old, name) != defaults[name]]
    training_only = old.training_only_fields if isinstance(old, Task) and "train" in registry.field_names(new) else ()
    recipe = dict.fromkeys([*unlike, *training_only])
    free = {name for name, value in _defaults(new).items() if getattr(new, name) == value}
    shared = {name: getattr(old, name) for name in recipe if name not in skip and shares(old, new, name)}
    kept = {name: value for name, value in shared.items() if name in free and getattr(new, name) != value}
    units = _fixed_units(old, new)
    if "units" in units and "units" in free and "units" not in skip:
        kept["units"] = units["units"]
    config = _with(new, kept)
    took = tuple(name for name, value in kept.items() if getattr(config, name) == value)
    lost = tuple(name for name in unlike if name not in skip and getattr(config, name, MISSING) != getattr(old, name))
    lost += tuple(name for name in units if name not in took and not skip & {"units", name})
    return Inherited(config, took, lost)


def inherit_noted(old: object, new: object, override: str, skip: frozenset[str]) -> tuple[Any, str]:
    """Let the task or model `new` of an override inherit from `old`, which the experiment file has.

    Args:
        old: the config that is replaced.
        new: the config that replaces it. If one of the two is not registered, nothing is inherited.
        override: the override as text, for example "task=parallel".
        skip: fields that are not inherited, because a person sets them.

    Returns:
        The new config, and a line on what it keeps and does not keep, or "".
    """
    if registry.find(old) is None or registry.find(new) is None:
        return new, ""
    found = inherit(old, new, skip)
    kept = (
        f"keeps {described(found.config, found.kept)} of the file's {override.partition('=')[0]}" if found.kept else ""
    )
    lost = f"does not keep {described(old, found.lost)}" if found.lost else ""
    parts = [part for part in (kept, lost) if part]
    return found.config, f"{override} {', and '.join(parts)}" if parts else ""


def shares(old: object, new: object, name: str) -> bool:
    """Return whether `new` has a field of that name and type that allows the value of `old`.

    Args:
        old: the config that is replaced.
        new: the config that replaces it. If it has the class of `old`, the result is True.
        name: the name of the field.
    """
    if type(old) is type(new):
        return True
    old_kinds, new_kinds = annotations(type(old)), annotations(type(new))
    both = name in registry.field_names(old) and name in registry.field_names(new)
    return both and old_kinds.get(name) == new_kinds.get(name) and fits(getattr(old, name), new_kinds.get(name, object))


def described(config: Any, names: tuple[str, ...]) -> str:
    """Return fields as on the command line, for example "units=bpe units.size=10000 smoothing=0.1"."""
    fixed = dict(zip(UNITS, config.fixed_units, strict=False)) if isinstance(config, Task) else {}
    return " ".join(part for name in names for part in _settings(name, getattr(config, name, fixed.get(name))))


def _fixed_units(old: object, new: object) -> dict[str, object]:
    """Return the units that `old` always has and that `new` has other ones of, by the names of the fields of `new`."""
    fields = registry.field_names(new)
    if not isinstance(old, Task) or not old.fixed_units or "train" not in fields or not {*UNITS} <= {*fields}:
        return {}
    source, target = old.fixed_units
    units: dict[str, object] = {} if type(getattr(new, "units", None)) is type(source) else {"units": source}
    return units | ({"target_units": target} if target != source else {})


def _with(config: Any, kept: dict[str, Any]) -> Any:
    """Return the config with these fields. If it refuses them together, set them one by one and skip refused ones."""
    try:
        return replace(config, **kept) if kept else config
    except ValueError:
        for name, value in kept.items():
            try:
                config = replace(config, **{name: value})
            except ValueError:
                continue
        return config


def _defaults(config: Any) -> dict[str, Any]:
    """Return the default of each field of a config's class, or MISSING if there is none."""
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(config)
        if each.init
    }


def _settings(path: str, value: object) -> list[str]:
    """Return a field, and the fields inside it that differ from the registered value of its name."""
    inside: list[str] = []
    if found := registry.find(value):
        named = registry.table(found[0])[found[1]]
        for name in registry.field_names(value):
            if getattr(value, name) != getattr(named, name):
                inside += _settings(f"{path}.{name}", getattr(value, name))
    return [f"{path}={text(value)}", *inside]
