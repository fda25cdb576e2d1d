"""HTML and SVG that cannot be broken out of: what is put into a tag is escaped, unless it is a tag itself."""

from __future__ import annotations

from html import escape
from typing import Any

_VOID = {"meta", "link", "br", "hr", "input"}


class Markup(str):
    """Text that is HTML already. Only `tag`, `join` and what this package wrote itself make it."""


def tag(_name: str, *children: Any, **attributes: Any) -> Markup:
    """`<name attributes>children</name>`; children and values are escaped, those that are None left out.

    Attributes are written class_, aria_label, stroke_width; True stands for one without a value.

    >>> tag("a", "1 < 2", class_="x", title='"', hidden=True)
    '<a class="x" title="&quot;" hidden>1 &lt; 2</a>'
    """
    opening = _name + "".join(_attribute(name, value) for name, value in attributes.items())
    if _name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(*children)}</{_name}>")


def join(*children: Any) -> Markup:
    """Children one after the other; lists are opened, None is nothing, the rest is escaped."""
    return Markup("".join(_child(child) for child in children))


def name(text: Any) -> Markup:
    """A name that someone gave: isolated, so that its direction of writing stays its own."""
    return tag("bdi", text, class_="name")


def _child(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, list | tuple):
        return join(*child)
    return child if isinstance(child, Markup) else escape(str(child), quote=True)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value), quote=True)}"'
