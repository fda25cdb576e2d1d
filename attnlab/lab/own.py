"""What an experiment names and attnlab does not define: one's own classes and functions, and what their code says."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from attnlab import registry

Named = dict[tuple[str, str], type | Callable]
PLAIN = bool | int | float | complex | str | bytes | None


def own(written: Any) -> Named:
    """The classes and functions of one's own that `configuration.write` names, by (registry, name)."""
    held = {tag: registry.table(tag[0])[tag[1]] for tag in _tags(written)}
    kinds = {tag: value if hasattr(value, "__qualname__") else type(value) for tag, value in held.items()}
    return {tag: kind for tag, kind in kinds.items() if kind.__module__.partition(".")[0] != "attnlab"}


def codes(written: Any) -> dict[str, str]:
    """The sha256 of the code of each, by REGISTRY.name; equal where it says the same.

    Counted are methods and functions, with those and the plain values of the same module that they name, as Python
    reads them: comments and white space are not. Fields stand in the configuration itself.
    """
    return {f"{place}.{name}": _digest(kind) for (place, name), kind in own(written).items()}


def edited(kept: dict[str, Any], written: Any) -> list[str]:
    """The names whose code is another than a run's `experiment.json` has it, of what is written of its experiment.

    What was not written down then cannot be told.
    """
    before = kept.get("code")
    before = before if isinstance(before, dict) else {}
    return [name for name, code in codes(written).items() if before.get(name, code) != code]


def _tags(written: Any) -> Iterator[tuple[str, str]]:
    if isinstance(written, dict):
        if "registry" in written:
            yield written["registry"], written["name"]
        written = list(written.values())
    for inner in written if isinstance(written, list) else ():
        yield from _tags(inner)


def _digest(kind: type | Callable) -> str:
    found: dict[str, str] = {}
    _gather(kind, kind.__module__, kind.__qualname__, found)
    return hashlib.sha256("\n".join(f"{name}: {code}" for name, code in sorted(found.items())).encode()).hexdigest()


def _gather(value: Any, module: str, name: str, found: dict[str, str]) -> None:
    """Put what a value of a module says into `found`, and what it names there."""
    value = inspect.unwrap(value) if callable(value) else value
    if name in found:
        return
    if isinstance(value, PLAIN):
        found[name] = repr(value)
    elif isinstance(value, tuple):
        for n, entry in enumerate(value):
            _gather(entry, module, f"{name}[{n}]", found)
    elif getattr(value, "__module__", None) != module:
        return  # a library's
    elif isinstance(value, type):
        found[name] = "class"
        for base in value.__mro__[1:]:
            _gather(base, module, base.__qualname__, found)
        for member, part in _members(value):
            _gather(part, module, f"{name}.{member}", found)
    elif isinstance(value, FunctionType):
        found[name] = _said(value)
        for used in _names(value.__code__):
            if used in value.__globals__:
                _gather(value.__globals__[used], module, used, found)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """What a class holds beside its fields: functions without what wraps them, and values."""
    for name, held in vars(kind).items():
        if isinstance(held, staticmethod | classmethod):
            yield name, held.__func__
        elif isinstance(held, property):
            yield name, held.fget
        elif callable(held) or not (name.startswith("__") or name in registry.field_names(kind)):
            yield name, held


def _said(function: FunctionType) -> str:
    """A function's source as Python reads it; where there is none, as in what a dataclass writes, what it compiled to.

    What Python itself wrote for a class says no more than its fields, and nothing here.
    """
    try:
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, TypeError, SyntaxError):
        return "" if function.__code__.co_filename == "<string>" else _compiled(function.__code__)


def _compiled(code: CodeType) -> str:
    consts = [_compiled(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts]
    return f"{code.co_code.hex()} {consts} {code.co_names}"


def _names(code: CodeType) -> set[str]:
    """The names that code takes from its module, with those of what is written within it."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))
