"""What a task or a model on the command line keeps of the one in the experiment file that it replaces."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from attnlab import registry
from attnlab.lab.study.values import annotations, fits, text


@dataclass(frozen=True)
class Inherited:
    """A new config with the fields of the old one's recipe, and the names of those that it kept and could not keep."""

    config: Any
    kept: tuple[str, ...]
    lost: tuple[str, ...]


def inherit(old: Any, new: Any, skip: frozenset[str] = frozenset()) -> Inherited:
    """The config `new` with what it has of the recipe of `old`.

    The recipe is every field that `old` sets to another value than its class's default. A task that reads files of
    your own, which has a field `train`, also keeps the fields that concern training alone
    (`Task.training_only_fields`) as `old` has them by default: it has no recipe of its own. A field is kept where
    `new` has one of the same name and type, and leaves it at its class's default. Fields in `skip` are left alone: a
    person sets them.
    """
    defaults = _defaults(old)
    unlike = [name for name in registry.field_names(old) if getattr(old, name) != defaults[name]]
    training_only = (
        old.training_only_fields
        if hasattr(old, "training_only_fields") and "train" in registry.field_names(new)
        else ()
    )
    recipe = dict.fromkeys([*unlike, *training_only])
    free = {name for name, value in _defaults(new).items() if getattr(new, name) == value}
    wanted = {name: getattr(old, name) for name in recipe if name not in skip and shares(old, new, name)}
    kept = {name: value for name, value in wanted.items() if name in free and getattr(new, name) != value}
    config = _with(new, kept)
    took = tuple(name for name, value in kept.items() if getattr(config, name) == value)
    lost = tuple(name for name in unlike if name not in skip and getattr(config, name, MISSING) != getattr(old, name))
    return Inherited(config, took, lost)


def shares(old: Any, new: Any, name: str) -> bool:
    """Whether `new` has a field of that name and of the same type, which allows the value of `old`."""
    if type(old) is type(new):
        return True
    here, there = annotations(type(old)), annotations(type(new))
    both = name in registry.field_names(old) and name in registry.field_names(new)
    return both and here.get(name) == there.get(name) and fits(getattr(old, name), there.get(name, Any))


def described(config: Any, names: tuple[str, ...]) -> str:
    """Fields with their values as on the command line: "units=bpe units.size=10000 smoothing=0.1"."""
    return " ".join(part for name in names for part in _settings(name, getattr(config, name)))


def _with(config: Any, kept: dict[str, Any]) -> Any:
    """The config with these fields; where they do not go together, with those that do, in order."""
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
    """What each field of a config's class is where nobody sets it; MISSING where it must be set."""
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(config)
        if each.init
    }


def _settings(path: str, value: Any) -> list[str]:
    """A field, and the fields inside it that are not those of the registered value of its name."""
    inside: list[str] = []
    if found := registry.find(value):
        named = registry.table(found[0])[found[1]]
        for name in registry.field_names(value):
            if getattr(value, name) != getattr(named, name):
                inside += _settings(f"{path}.{name}", getattr(value, name))
    return [f"{path}={text(value)}", *inside]
