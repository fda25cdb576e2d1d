"""Your own classes and functions in an experiment: where they are defined, and a digest of their code."""

from __future__ import annotations

import ast
import copy
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType

from attnlab import registry

Named = dict[tuple[str, str], type | Callable]


def user_defined(written: object) -> Named:
    """Return the classes and functions in a written experiment that attnlab does not define, by (registry, name)."""
    held = {tag: registry.table(tag[0])[tag[1]] for tag in tags(written)}
    kinds = {tag: value if isinstance(value, type | FunctionType) else type(value) for tag, value in held.items()}
    return {tag: kind for tag, kind in kinds.items() if kind.__module__.partition(".")[0] != "attnlab"}


def codes(written: object) -> dict[str, str]:
    """Return the sha256 of the code of each user-defined entry, by "REGISTRY.name".

    The digest covers the source of methods and functions, and that of everything that they use from your own modules.
    Comments, docstrings and layout do not count. Fields do not count, because they are part of the configuration.
    Libraries do not count, because their versions are recorded.

    Args:
        written: an experiment, as `serialize.write` returned it.
    """
    return {f"{place}.{name}": _digest(kind) for (place, name), kind in user_defined(written).items()}


def places(written: object) -> dict[str, str]:
    """Return where each user-defined entry is defined, by "REGISTRY.name", for example "Mine, of own.py".

    A module that can be imported is given by its name, any other by the name of its file without the folder.
    """
    return {
        f"{place}.{name}": f"{kind.__qualname__}, of {_place(kind)}"
        for (place, name), kind in user_defined(written).items()
    }


def missing(kept: dict[str, object]) -> list[str]:
    """Return where a run's user-defined entries were defined that are in no registry now."""
    before = kept.get("own")
    listed = before.items() if isinstance(before, dict) else ()
    found = [(*name.partition(".")[::2], str(where)) for name, where in listed]
    return [where for place, name, where in found if place in registry.PLACES and name not in registry.table(place)]


def edited(kept: dict[str, object], written: object) -> list[str]:
    """Return the names of entries whose code has changed since a run.

    Args:
        kept: the content of the run's `experiment.json`. An entry without a digest there counts as unchanged.
        written: the experiment, as `serialize.write` returned it.
    """
    before = kept.get("code")
    before = before if isinstance(before, dict) else {}
    return [name for name, code in codes(written).items() if before.get(name, code) != code]


def tags(written: object) -> Iterator[tuple[str, str]]:
    """Yield (registry, name) of every registered config in a written experiment."""
    if isinstance(written, dict):
        if "registry" in written:
            yield written["registry"], written["name"]
        written = list(written.values())
    for inner in written if isinstance(written, list) else ():
        yield from tags(inner)


def _place(kind: type | Callable) -> str:
    """Return the module of a class or function, or the name of its file."""
    module = sys.modules.get(kind.__module__)
    if (spec := getattr(module, "__spec__", None)) is not None:
        return spec.name
    file = getattr(module, "__file__", None)
    return Path(file).name if file else "a notebook or session"


def _digest(kind: type | Callable) -> str:
    """Return the sha256 of the source of a class or function and of all that it uses of your own modules."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):  # no source, for example in a session, or a part of a line
        return hashlib.sha256(kind.__qualname__.encode()).hexdigest()
    found: dict[tuple[str, str], str] = {}
    _add_used(kind.__module__, tree, found)
    lines = [_normalized(tree), *(f"{name}: {text}" for name, text in sorted(found.items()))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _add_used(module: str, tree: ast.AST, found: dict[tuple[str, str], str]) -> None:
    """Add the source of every name that code of a module uses, if it is your own, by (module, name)."""
    imported = _imports(module, _source(module)) | _imports(module, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            _add(*imported.get(node.id, (module, node.id)), found)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            place, name = imported[node.value.id]
            if name is None:
                _add(place, node.attr, found)


def _add(module: str, name: str | None, found: dict[tuple[str, str], str]) -> None:
    """Add the statements of your own module that mention a name at top level, and what they use."""
    if name is None or (module, name) in found or not _is_own(module):
        return
    tree = _source(module)
    statements = [statement for statement in tree.body if name in _bound(statement)]
    found[module, name] = "\n".join(_normalized(statement) for statement in statements)
    for statement in statements:
        _add_used(module, statement, found)


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement defines or changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _imports(module: str, tree: ast.AST) -> dict[str, tuple[str, str | None]]:
    """Return what the imports in code bind: (module, name), with None for a module itself."""
    package = getattr(sys.modules.get(module), "__package__", None) or ""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: (alias.name, None) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # a relative import outside of a package
                place = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module
                found |= {alias.asname or alias.name: (str(place), alias.name) for alias in node.names}
    return found


def _source(module: str) -> ast.Module:
    """Return the parsed source of a module, empty if there is none."""
    loaded = sys.modules.get(module)
    path = getattr(loaded, "__file__", None)
    try:
        if path is None:
            spec = find_spec(module)
            path = spec.origin if spec else None
        return ast.parse(Path(path).read_text("utf-8")) if path else ast.Module([], [])
    except (OSError, ImportError, SyntaxError, ValueError):
        return ast.Module([], [])


class _Stripped(ast.NodeTransformer):
    """Removes docstrings and the fields of classes, which are part of the configuration."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [part for part in node.body if not isinstance(part, ast.AnnAssign)] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node


def _normalized(tree: ast.AST) -> str:
    """Return code without comments, layout, docstrings and fields."""
    return ast.unparse(_Stripped().visit(copy.deepcopy(tree)))


@cache
def _is_own(module: str) -> bool:
    """Return whether a module is your own: not of Python, of attnlab, or of an installed library."""
    top = module.partition(".")[0]
    if top == "__main__":
        return True
    if top == "attnlab" or top in sys.stdlib_module_names:
        return False
    loaded = sys.modules.get(top)
    try:
        spec = getattr(loaded, "__spec__", None) or (find_spec(top) if loaded is None else None)
    except (ImportError, ValueError):
        return False
    places = [*(spec.submodule_search_locations or ()), spec.origin] if spec else [getattr(loaded, "__file__", None)]
    paths = [Path(place) for place in places if place and Path(place).is_absolute()]
    return bool(paths) and not any({"site-packages", "dist-packages"} & {*path.parts} for path in paths)
