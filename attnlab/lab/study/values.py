"""One field's value: what would do, read from text, told as text. Says nothing of where the field stands."""

import contextlib
import io
import math
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from attnlab import registry

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}
PLURALS = {int: "whole numbers", float: "numbers", bool: "true or false", str: "texts"}


@cache
def annotations(kind: type) -> dict[str, Any]:
    """What each field of a config class may hold; Any where its annotation cannot be told."""
    try:
        return get_type_hints(kind)
    except (NameError, TypeError):
        return {}


def members(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union; of anything else, itself alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def wanted(annotation: Any) -> str:
    """What would do, in words: "a whole number, or whole numbers with commas between"."""
    return ", or ".join(map(_wanted, members(annotation)))


def _wanted(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(text, get_args(kind)))}"
    if is_dataclass(kind):
        return f"a {_name(kind)}, set field by field"
    if get_origin(kind) is not tuple:
        return WORDS.get(kind, "a value that only an experiment file can give")
    inner = get_args(kind)
    if inner[-1] is Ellipsis:
        return f"{PLURALS.get(inner[0], 'values')} with commas between"
    return f"{len(inner)} {PLURALS.get(inner[0], 'values')} with a comma between"


def parse(annotation: Any, given: str) -> Any:
    """The value that a text stands for; a tuple's entries have commas between, and the last may end with one.

    Raises ValueError saying what would do.
    """
    # Text takes anything, so it is what remains where nothing else fits.
    for kind in sorted(members(annotation), key=lambda kind: kind is str):
        with contextlib.suppress(ValueError):
            return _parse(kind, given)
    raise ValueError(f"must be {wanted(annotation)}")


def _parse(kind: Any, given: str) -> Any:
    if kind is str:
        return given
    if kind is bool:
        given = {"true": "True", "false": "False"}.get(given.lower(), given)
    if kind is NoneType:
        if given.lower() != "none":
            raise ValueError
        return None
    if get_origin(kind) is tuple:
        return _ask(kind, given.removesuffix(",").split(",") if given else [])
    return _ask(kind, [given])


def _ask(kind: Any, entries: list[str]) -> Any:
    import tyro

    # tyro prints some refusals although told not to.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return tyro.cli(kind, args=entries, console_outputs=False, add_help=False)
        except (SystemExit, Exception) as refusal:
            raise ValueError(f"{entries} is no {kind}") from refusal


def fits(value: Any, annotation: Any) -> bool:
    """Whether a plain value is one that the annotation allows; what is no plain value, or of Any, fits."""
    return any(_fits(value, kind) for kind in members(annotation))


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and _entries_fit(value, get_args(kind))
    if kind is float:
        return type(value) in (int, float)
    if kind in WORDS:
        return type(value) is kind
    return isinstance(value, kind) if isinstance(kind, type) and is_dataclass(kind) else True


def _entries_fit(value: tuple, kinds: tuple) -> bool:
    if kinds[-1] is Ellipsis:
        return all(fits(entry, kinds[0]) for entry in value)
    return len(value) == len(kinds) and all(map(fits, value, kinds))


def text(value: Any) -> str:
    """A value as one would write it on the command line; what is in a registry by its name there."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(text, value)) + ("," if len(value) == 1 else "")
    if found := registry.find(value):
        return found[1]
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return _name(value) if is_dataclass(value) or isinstance(value, Callable) else str(value)


def _name(value: Any) -> str:
    return value.__name__ if hasattr(value, "__name__") else type(value).__name__
