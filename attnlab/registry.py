"""The registries, and messages for names that are not in one.

A registry is imported only when it is first used.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, Protocol, TypeVar, runtime_checkable

Value = TypeVar("Value")


class Registry(dict[str, Value]):
    """Dict from name to value. For an unknown name, `[name]` raises KeyError with the nearest and the known names.

    Args:
        name: name of the registry, for messages.

    >>> numbers = Registry("MECHANISMS")
    >>> numbers |= {"softmax": 1, "linear": 2}
    >>> numbers["sofmax"]
    Traceback (most recent call last):
    KeyError: "MECHANISMS['sofmax'] is not known; nearest: 'softmax'; known: softmax, linear"
    """

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __missing__(self, name: object) -> Value:
        raise KeyError(unknown(f"{self.name}[{name!r}] is not known", str(name), self))


# Module of each registry. All are dicts from name to default instance (SCORES: from name to function).
PLACES = {
    "MECHANISMS": "attnlab.mechanisms",
    "PATTERNS": "attnlab.pattern",
    "POSITIONS": "attnlab.modules.position",
    "ATTENTIONS": "attnlab.modules.attentions",
    "MODELS": "attnlab.models",
    "TASKS": "attnlab.tasks",
    "FEATURES": "attnlab.ops.feature",
    "SCORES": "attnlab.ops.score",
    "SCALINGS": "attnlab.ops.position",
    "UNITS": "attnlab.data.text.units",
    "DECODERS": "attnlab.decoding",
}


def table(name: str) -> dict[str, Any]:
    """Returns the registry with this name."""
    return getattr(import_module(PLACES[name]), name)


def pick(registry: Mapping[str, Value], name: str, field: str) -> Value:
    """Returns the value with this name.

    Args:
        registry: mapping from name to value.
        name: name to look up.
        field: path of the setting that holds the name, for the message.

    Raises:
        ValueError: if the name is unknown. The message is one line with the nearest name and the known ones.

    >>> pick({"softmax": 1, "linear": 2}, "sofmax", "model.mechanism")
    Traceback (most recent call last):
    ValueError: model.mechanism='sofmax' is not known; nearest: 'softmax'; known: softmax, linear
    """
    if name not in registry:
        raise ValueError(unknown(f"{field}={name!r} is not known", name, registry))
    return registry[name]


def unknown(complaint: str, name: str, known: Iterable[str]) -> str:
    """Returns the complaint followed by the nearest name, if there is one, and the known names.

    Args:
        complaint: the first part of the message.
        name: the name that is not known.
        known: the known names.
    """
    known = list(known)
    near = nearest(name, known)
    hint = f"; nearest: {near!r}" if near else ""
    return f"{complaint}{hint}; known: {', '.join(known) or 'none'}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name nearest to `name`, ignoring case, or None.

    The shortest known name that begins with `name` (of at least 3 letters) is preferred to the most similar one.
    """
    from difflib import get_close_matches

    lower = {word.lower(): word for word in known}
    begun = sorted((word for word in lower if len(name) > 2 and word.startswith(name.lower())), key=len)
    matches = begun or get_close_matches(name.lower(), lower, n=1)
    return next((lower[match] for match in matches), None)


def no_field(config: object, name: str, path: str) -> str:
    """Returns the message that a config, or its class, has no field `name`.

    Args:
        config: a dataclass instance or class, or another value.
        name: name of the field.
        path: full path of the field in the config. It ends with `name`.
    """
    kind = config if isinstance(config, type) else type(config)
    upper = path.removesuffix(f".{name}")
    if config is None:
        return f"{path}: {upper} is none, which has no fields; set {upper} first"
    if not is_dataclass(config):
        shown = config.__name__ if isinstance(config, type | FunctionType) else repr(config)
        return f"{path}: {upper} is {shown}, which has no fields"
    known = field_names(config)
    # A correct name at the wrong level (`seeds` for `train.seeds`) is more likely than a misspelt one.
    held = {f.name: f.default if isinstance(config, type) else getattr(config, f.name) for f in fields(config)}
    deeper = [f"{upper}.{name}" for upper in known if name in field_names(held[upper])]
    complaint = f"{path}: {kind.__name__} has no field {name!r}"
    if deeper:
        return f"{complaint}; nearest: {deeper[0]!r}; known: {', '.join(known)}"
    return unknown(complaint, name, known)


def field_names(config: object) -> list[str]:
    """Returns the names of the fields that the constructor of `config` takes. Empty if it is not a dataclass."""
    return [f.name for f in fields(config) if f.init] if is_dataclass(config) else []


def find(value: object) -> tuple[str, str] | None:
    """Returns (registry, name) of a value, or None.

    Prefers the name of an equal value to the first name of a value of the same class.
    """
    if not is_dataclass(value) and not callable(value):
        return None
    for place in PLACES:
        if first := first_name(place, value):
            return place, next((name for name, held in table(place).items() if held == value), first)
    return None


def first_name(place: str, value: object) -> str | None:
    """Returns the first name in a registry of a value of the same class (for a function: of itself), or None."""
    return next((name for name, held in table(place).items() if _alike(held, value)), None)


def _alike(held: object, value: object) -> bool:
    """Returns whether two values have the same class, or are the same function."""
    return type(held) is type(value) if is_dataclass(held) else held is value


def home(value: object, field: str, annotations: Iterable[object] = ()) -> str | None:
    """Returns the name of the registry that a field's value comes from, or None.

    The registry is determined from the value, then from its class and annotations, then from the name of the field.

    Args:
        value: current value of the field.
        field: name of the field.
        annotations: types that the field is annotated with.
    """
    if isinstance(value, bool | int | float | str | tuple):
        return None
    if found := find(value):
        return found[0]
    kinds = [kind for kind in (type(value), *annotations) if isinstance(kind, type)]
    for place in PLACES:
        if any(_kin(kind, held) for kind in kinds for held in table(place).values()):
            return place
    return by_name if (by_name := f"{field.upper()}S") in PLACES else None


def _kin(kind: type, held: object) -> bool:
    """Returns whether a class shares a base class, other than built-in and abstract ones, with a registered value."""
    shared = set(kind.__mro__) & set(type(held).__mro__)
    return any(base.__module__ not in ("builtins", "abc", "typing", "collections.abc") for base in shared)


def add_first(place: str, name: str, example: str = "…") -> str:
    """Returns the instruction to add your own value to a registry.

    Args:
        place: name of the registry.
        name: name of the value in it.
        example: the value, as Python code. Default: "…".
    """
    return f"add it first: attnlab.{place}[{name!r}] = {example}"


@runtime_checkable
class Described(Protocol):
    """A value that describes itself, because its class stands for several values of a registry."""

    @property
    def line(self) -> str:
        """The description, in one line."""
        ...


def first_line(value: object) -> str:
    """Returns a one-line description of a value.

    This is its `line` if it is `Described`, else the first line of the docstring of its class, or of the function.
    """
    if isinstance(value, Described) and not isinstance(value, type):
        return value.line
    # The docstring of an instance lists no fields (see `attnlab.documented`), so no source is read for it.
    return (value.__doc__ or "").strip().split("\n")[0]
