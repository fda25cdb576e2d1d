"""The registries, and what to say where a name is not in one. Imports nothing until asked."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

Value = TypeVar("Value")


class Registry(dict[str, Value]):
    """A dict, name → value, whose `[name]` says of an unknown name what is near it and what is known.

    Args:
        name: what the registry is called.

    >>> numbers = Registry("MECHANISMS")
    >>> numbers |= {"softmax": 1, "linear": 2}
    >>> numbers["sofmax"]
    Traceback (most recent call last):
    KeyError: "MECHANISMS['sofmax'] is not known; nearest: 'softmax'; known: softmax, linear"
    """

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __missing__(self, name: Any) -> Value:
        raise KeyError(unknown(f"{self.name}[{name!r}] is not known", str(name), self))


# Where each registry lives. All are dicts, name → default instance (SCORES: name → function).
PLACES = {
    "MECHANISMS": "attnlab.mechanisms",
    "POSITIONS": "attnlab.modules.position",
    "MODELS": "attnlab.models",
    "TASKS": "attnlab.tasks",
    "FEATURES": "attnlab.ops.feature",
    "SCORES": "attnlab.ops.score",
    "UNITS": "attnlab.data.text.units",
    "DECODERS": "attnlab.decoding",
}


def table(name: str) -> dict[str, Any]:
    """The registry of that name."""
    return getattr(import_module(PLACES[name]), name)


def pick(registry: Mapping[str, Value], name: str, field: str) -> Value:
    """The value of that name; `field` is the path to name where there is none.

    Raises ValueError, in one line with the nearest name and the known ones.

    >>> pick({"softmax": 1, "linear": 2}, "sofmax", "model.mechanism")
    Traceback (most recent call last):
    ValueError: model.mechanism='sofmax' is not known; nearest: 'softmax'; known: softmax, linear
    """
    if name not in registry:
        raise ValueError(unknown(f"{field}={name!r} is not known", name, registry))
    return registry[name]


def unknown(complaint: str, name: str, known: Iterable[str]) -> str:
    """The complaint, with the nearest name (where one is near) and the known ones."""
    known = list(known)
    near = nearest(name, known)
    hint = f"; nearest: {near!r}" if near else ""
    return f"{complaint}{hint}; known: {', '.join(known) or 'none'}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The shortest known name that begins so, else the one most like it, upper and lower case alike; or None."""
    from difflib import get_close_matches

    lower = {word.lower(): word for word in known}
    begun = sorted((word for word in lower if len(name) > 2 and word.startswith(name.lower())), key=len)
    matches = begun or get_close_matches(name.lower(), lower, n=1)
    return next((lower[match] for match in matches), None)


def no_field(config: Any, name: str, path: str) -> str:
    """The complaint that a config (or its class) has no field `name`; `path` ends with that name."""
    kind = config if isinstance(config, type) else type(config)
    upper = path.removesuffix(f".{name}")
    if config is None:
        return f"{path}: {upper} is none, which has no fields; set {upper} first"
    if not is_dataclass(config):
        return f"{path}: {upper} is {getattr(config, '__name__', repr(config))}, which has no fields"
    known = field_names(config)
    # A right name at the wrong depth (`seeds` for `train.seeds`) is the likelier slip.
    deeper = [f"{upper}.{name}" for upper in known if name in field_names(getattr(config, upper, None))]
    complaint = f"{path}: {kind.__name__} has no field {name!r}"
    if deeper:
        return f"{complaint}; nearest: {deeper[0]!r}; known: {', '.join(known)}"
    return unknown(complaint, name, known)


def field_names(config: Any) -> list[str]:
    """The fields that a constructor of `config` takes; none for what is no dataclass."""
    return [f.name for f in fields(config) if f.init] if is_dataclass(config) else []


def find(value: Any) -> tuple[str, str] | None:
    """(registry, name) of a value: the name of an equal one, else the first of its class; or None."""
    if not is_dataclass(value) and not callable(value):
        return None
    for place in PLACES:
        if first := first_name(place, value):
            return place, next((name for name, held in table(place).items() if held == value), first)
    return None


def first_name(place: str, value: Any) -> str | None:
    """The first name in a registry of a value's class (of a function, itself), or None."""
    return next((name for name, held in table(place).items() if _alike(held, value)), None)


def _alike(held: Any, value: Any) -> bool:
    return type(held) is type(value) if is_dataclass(held) else held is value


def home(value: Any, field: str, annotations: Iterable[Any] = ()) -> str | None:
    """The registry that a field draws from, told by its value, its annotations or its name; or None."""
    if isinstance(value, bool | int | float | str | tuple):
        return None
    if found := find(value):
        return found[0]
    kinds = [kind for kind in (type(value), *annotations) if isinstance(kind, type)]
    for place in PLACES:
        if any(_kin(kind, held) for kind in kinds for held in table(place).values()):
            return place
    return by_name if (by_name := f"{field.upper()}S") in PLACES else None


def _kin(kind: type, held: Any) -> bool:
    """Whether a class shares a base of ours with a registered value."""
    shared = set(kind.__mro__) & set(type(held).__mro__)
    return any(base.__module__ not in ("builtins", "abc", "typing", "collections.abc") for base in shared)


def add_first(place: str, name: str, example: str = "…") -> str:
    """What to do for a value of one's own."""
    return f"add it first: attnlab.{place}[{name!r}] = {example}"


def first_line(value: type | Callable | Any) -> str:
    """The line a value offers about itself, else the first of its class's docstring, or of the function's."""
    if isinstance(own := getattr(value, "line", None), str):
        return own
    document = value.__doc__ if isinstance(value, type) or not is_dataclass(value) else type(value).__doc__
    return (document or "").strip().split("\n")[0]
