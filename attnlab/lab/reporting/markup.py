"""HTML and SVG that is safe against injection: everything put into a tag is escaped, unless it is a tag itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

Child: TypeAlias = "str | float | Sequence[Child] | None"  # what a tag may contain

_VOID = {"meta", "link", "br", "hr", "input"}


class Markup(str):
    """Text that is HTML already. Only `tag`, `join` and this package itself may create it."""


def tag(_name: str, *children: Child, **attributes: str | float | None) -> Markup:
    """Return `<name attributes>children</name>`. Children and values are escaped, and None is omitted.

    Attributes are written as `class_`, `aria_label` or `stroke_width`. True stands for an attribute without a value.

    >>> tag("a", "1 < 2", class_="x", title='"', hidden=True)
    '<a class="x" title="&quot;" hidden>1 &lt; 2</a>'
    """
    opening = _name + "".join(_attribute(name, value) for name, value in attributes.items())
    if _name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(*children)}</{_name}>")


def join(*children: Child) -> Markup:
    """Concatenate children. Lists are flattened, None is omitted, and the rest is escaped."""
    return Markup("".join(_child(child) for child in children))


def name(text: Child) -> Markup:
    """Return a user-given name, isolated so that its writing direction does not affect the text around it."""
    return tag("bdi", text, class_="name")


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, list | tuple):
        return join(*child)
    return child if isinstance(child, Markup) else escape(str(child), quote=True)


def _attribute(name: str, value: str | float | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value), quote=True)}"'
