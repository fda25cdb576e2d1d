"""Values of fields: check them against annotations, parse them from text, and write them as text."""

import contextlib
import io
import math
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from types import FunctionType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from attnlab import registry

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}
PLURALS = {int: "whole numbers", float: "numbers", bool: "true or false", str: "texts"}


@cache
def annotations(kind: type) -> dict[str, object]:
    """Return the type of each field of a config class, or an empty dict if its annotations cannot be resolved."""
    try:
        return get_type_hints(kind)
    except (NameError, TypeError):
        return {}


def members(annotation: object) -> tuple[object, ...]:
    """Return the alternatives of a union, or a tuple of the annotation itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def check_kind(path: str, value: object, kind: object) -> None:
    """Raise ValueError if an annotation does not allow a value.

    Args:
        path: the dotted path of the field, for the message.
        value: the value.
        kind: the annotation.
    """
    if not fits(value, kind):
        hint = ", as a tuple instead of a list" if isinstance(value, list) else ""
        raise ValueError(f"{path}={value!r} must be {wanted(kind)}{hint}")


def wanted(annotation: object) -> str:
    """Describe the allowed values in words, for example "a whole number, or whole numbers separated by commas"."""
    return ", or ".join(map(_wanted, members(annotation)))


def _wanted(kind: object) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(text, get_args(kind)))}"
    if is_dataclass(kind):
        return f"a {_name(kind)}, set field by field"
    if get_origin(kind) is not tuple:
        return WORDS.get(kind, "a value that only an experiment file can set")
    inner = get_args(kind)
    if inner[-1] is Ellipsis:
        return f"{PLURALS.get(inner[0], 'values')} separated by commas"
    return f"{len(inner)} {PLURALS.get(inner[0], 'values')} separated by commas"


def parse(annotation: object, given: str) -> object:
    """Parse a value from text.

    Args:
        annotation: the type of the field. The entries of a tuple are separated by commas, and a last comma is allowed.
        given: the text.

    Raises:
        ValueError: if the text fits no alternative. The message says what is allowed.
    """
    # Any text is a valid str, so str is tried last.
    for kind in sorted(members(annotation), key=lambda kind: kind is str):
        with contextlib.suppress(ValueError):
            return _parse(kind, given)
    raise ValueError(f"must be {wanted(annotation)}")


def _parse(kind: object, given: str) -> object:
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


def _ask(kind: Any, entries: list[str]) -> object:
    """Let tyro parse arguments as a type. Raises ValueError if it rejects them."""
    import tyro

    # tyro prints some errors even with console_outputs=False.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return tyro.cli(kind, args=entries, console_outputs=False, add_help=False)
        except (SystemExit, Exception) as refusal:
            raise ValueError(f"{entries} does not fit {kind}") from refusal


def fits(value: object, annotation: object) -> bool:
    """Return whether the annotation allows a value. Only plain values, tuples and dataclasses are checked."""
    return any(_fits(value, kind) for kind in members(annotation))


def _fits(value: object, kind: object) -> bool:
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


def text(value: object) -> str:
    """Return a value as it is written on the command line. A registered value is written by its name."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(text, value)) + ("," if len(value) == 1 else "")
    if found := registry.find(value):
        return str(value) if found[0] == "PATTERNS" else found[1]
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return _name(value) if is_dataclass(value) or isinstance(value, Callable) else str(value)


def _name(value: object) -> str:
    return value.__name__ if isinstance(value, type | FunctionType) else type(value).__name__
