"""Documentation of config classes: the docstring, and each field with its default and what is written below it.

Sources are read only when a docstring is asked for, never on import.
"""

import ast
import inspect
import reprlib
import sys
from abc import ABCMeta
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from textwrap import dedent, indent
from types import FunctionType

_WRITTEN = vars(type)["__doc__"]  # gets and sets the docstring that is written in a class


class _Docstring:
    """The docstring of a class, followed by its fields if it is a dataclass whose source is available.

    Args:
        own: The docstring of the metaclass.
    """

    def __init__(self, own: str | None):
        self.own = own

    def __get__(self, kind: type | None, metaclass: type | None = None) -> str | None:
        if kind is None:
            return self.own
        written = _WRITTEN.__get__(kind)
        # `dataclass` asks for the docstring before the class has its name in the module, while that is imported.
        module = sys.modules.get(kind.__module__)
        named = module is not None and vars(module).get(kind.__name__) is kind
        return _with_fields(kind, written) if written and named and is_dataclass(kind) else written

    def __set__(self, kind: type, text: str | None) -> None:
        _WRITTEN.__set__(kind, text)


class Documented(ABCMeta):
    """Metaclass whose classes show the documentation of their fields in `help()`."""

    # `help` reads `__doc__` through the metaclass. A descriptor in the dict of a class would not do: `help` does not
    # evaluate it if the metaclass is ABCMeta.
    __doc__ = _Docstring(__doc__)  # pyright: ignore[reportAssignmentType]


def field_documentation(kind: type) -> dict[str, str]:
    """Returns what is written below each field of a dataclass, inherited fields included.

    Args:
        kind: The dataclass.

    Returns:
        The documentation by field name, "" for a field without any. A field that a subclass declares again without
        documentation keeps that of its base class. Without sources, all fields have "".
    """
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if is_dataclass(base):
            found |= _below_fields(base)
    return {field.name: found.get(field.name, "") for field in fields(kind)}


@cache
def _below_fields(kind: type) -> dict[str, str]:
    """Returns the strings directly below the fields in the body of one class. Empty without its source."""
    try:
        tree = ast.parse(dedent(inspect.getsource(kind)))
    except (OSError, TypeError, ValueError, SyntaxError):
        return {}
    body = next((node.body for node in tree.body if isinstance(node, ast.ClassDef)), [])
    return {
        field.target.id: inspect.cleandoc(below.value.value).rstrip()
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def _with_fields(kind: type, written: str) -> str:
    """Returns a docstring with a section "Attributes:", or unchanged if no field has documentation."""
    documentation = field_documentation(kind)
    if not any(documentation.values()):
        return written
    lines = [inspect.cleandoc(written), "", "Attributes:"]
    for field in fields(kind):
        default = "required" if (value := _default(field)) is MISSING else f"default {short_code(value)}"
        lines += [f"    {field.name} ({default}):", indent(documentation[field.name], " " * 8)]
    return "\n".join(lines)


def _default(field: Field) -> object:
    """Returns the default of a field, or MISSING if it is required."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def short_code(value: object) -> str:
    """Returns a value as short code. A config shows only the fields that differ from their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        held = [(field, getattr(value, field.name)) for field in fields(value)]
        changed = [f"{field.name}={short_code(own)}" for field, own in held if own != _default(field)]
        return f"{type(value).__name__}({', '.join(changed)})"
    return value.__name__ if isinstance(value, FunctionType | type) else reprlib.repr(value)
