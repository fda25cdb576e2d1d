"""Your own classes and functions in an experiment: where they are defined, and a digest of their code."""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from attnlab import registry

Named = dict[tuple[str, str], type | Callable]
PLAIN = bool | int | float | complex | str | bytes | range | None


def user_defined(written: Any) -> Named:
    """Return the classes and functions in a written experiment that attnlab does not define, by (registry, name)."""
    held = {tag: registry.table(tag[0])[tag[1]] for tag in tags(written)}
    kinds = {tag: value if hasattr(value, "__qualname__") else type(value) for tag, value in held.items()}
    return {tag: kind for tag, kind in kinds.items() if kind.__module__.partition(".")[0] != "attnlab"}


def codes(written: Any) -> dict[str, str]:
    """Return the sha256 of the code of each user-defined entry, by "REGISTRY.name".

    The digest covers methods and functions, and whatever they use from your own modules: functions, classes, and the
    present values of numbers, texts, lists, dicts, arrays and configs. Comments and white space do not count. Fields do
    not count, because they are part of the configuration. Libraries do not count, because their versions are recorded.

    Args:
        written: an experiment, as `serialize.write` returned it.
    """
    return {f"{place}.{name}": _digest(kind) for (place, name), kind in user_defined(written).items()}


def places(written: Any) -> dict[str, str]:
    """Return where each user-defined entry is defined, by "REGISTRY.name", for example "Mine, of own.py".

    A module that can be imported is given by its name, any other by the name of its file without the folder.
    """
    return {
        f"{place}.{name}": f"{kind.__qualname__}, of {_place(kind)}"
        for (place, name), kind in user_defined(written).items()
    }


def missing(kept: dict[str, Any]) -> list[str]:
    """Return where a run's user-defined entries were defined that are in no registry now."""
    before = kept.get("own")
    listed = before.items() if isinstance(before, dict) else ()
    found = [(*name.partition(".")[::2], str(where)) for name, where in listed]
    return [where for place, name, where in found if place in registry.PLACES and name not in registry.table(place)]


def edited(kept: dict[str, Any], written: Any) -> list[str]:
    """Return the names of entries whose code has changed since a run.

    Args:
        kept: the content of the run's `experiment.json`. An entry without a digest there counts as unchanged.
        written: the experiment, as `serialize.write` returned it.
    """
    before = kept.get("code")
    before = before if isinstance(before, dict) else {}
    return [name for name, code in codes(written).items() if before.get(name, code) != code]


def tags(written: Any) -> Iterator[tuple[str, str]]:
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
    """Return the sha256 of everything that `_Reading` collects for a class or function."""
    reading = _Reading(kind.__module__)
    reading.add(kind, kind.__qualname__)
    lines = (f"{name}: {code}" for name, code in sorted(reading.found.items()))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class _Reading:
    """Collects a text for a value and for everything that it uses, by name, in `found`.

    Names within the module `home` are written without the name of the module.
    """

    def __init__(self, home: str):
        self.home = home
        self.found: dict[str, str] = {}
        self.names: dict[int, str] = {}  # of values with parts, by id, so that cyclic references end
        self.kept: list[Any] = []  # keeps values alive, because the id of a dead one may be reused

    def add(self, value: Any, name: str) -> None:
        """Add the text of a value under a name, and that of everything it uses under further names."""
        if name in self.found:
            return
        if isinstance(value, PLAIN):
            self.found[name] = repr(value)
        elif isinstance(value, tuple):
            # Python may or may not share equal tuples, so their identity must not count.
            self._each(value, name, "tuple", enumerate(value))
        elif id(value) in self.names:
            self.found[name] = f"is {self.names[id(value)]}"
        else:
            self.names[id(value)] = name
            self.kept.append(value)
            self._parts(value, name)

    def _parts(self, value: Any, name: str) -> None:
        if isinstance(value, list):
            self._each(value, name, "list", enumerate(value))
        elif isinstance(value, set | frozenset):
            self._each(value, name, "set", enumerate(sorted(value, key=repr)))
        elif isinstance(value, dict):
            self._each(value, name, "dict", ((repr(key), held) for key, held in value.items()))
        elif isinstance(value, partial):
            self._each(value, name, "partial", [("func", value.func), ("args", value.args), ("kw", value.keywords)])
        elif isinstance(value, MethodType):
            self._each(value, name, "method", [("func", value.__func__), ("self", value.__self__)])
        elif isinstance(value, type):
            self._class(value, name)
        elif isinstance(value, FunctionType):
            self._function(value, name)
        elif hasattr(value, "__wrapped__"):  # for example jitted or cached
            self.add(value.__wrapped__, f"{name}.wrapped")
        elif hasattr(value, "__array__"):
            array = np.asarray(value)
            self.found[name] = f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"
        elif is_dataclass(value):
            fields = [(field, getattr(value, field)) for field in registry.field_names(value)]
            self._each(value, name, "", [("type", type(value)), *fields])
        elif self._is_own(type(value).__module__):
            held = getattr(value, "__dict__", {})
            self._each(value, name, "", [("type", type(value)), *held.items()])

    def _each(self, value: Any, name: str, kind: str, parts: Any) -> None:
        self.found[name] = f"{kind or type(value).__qualname__}"
        for key, part in parts:
            self.add(part, f"{name}[{key}]")

    def _class(self, kind: type, name: str) -> None:
        if not self._is_own(kind.__module__):
            return
        self.found[name] = "class"
        for base in kind.__mro__[1:]:
            self.add(base, self._called(base.__module__, base.__qualname__))
        for member, part in _members(kind):
            self.add(part, f"{name}.{member}")

    def _function(self, function: FunctionType, name: str) -> None:
        place = function.__globals__.get("__name__", function.__module__)
        if (inner := getattr(function, "__wrapped__", None)) is not None:
            self.add(inner, f"{name}.wrapped")
        if not self._is_own(place):
            return
        self.found[name] = _said(function)
        if not self.found[name]:
            return
        for n, value in enumerate((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())):
            self.add(value, f"{name}.default[{n}]")
        for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # an empty cell
                self.add(cell.cell_contents, f"{name}.{free}")
        names = _names(function.__code__)
        for used in sorted(names):
            if used in function.__globals__:
                self._named(function.__globals__[used], place, used, names)
        for module in sorted(_imports(function)):
            if self._is_own(module):
                with suppress(ImportError):  # an optional import that is not installed
                    self._named(import_module(module), place, module, names)

    def _named(self, value: Any, place: str, used: str, names: Set[str]) -> None:
        """Add a global value that code uses. For a module, add what the code uses from that module."""
        if not isinstance(value, ModuleType):
            self.add(value, self._called(place, used))
        elif self._is_own(value.__name__) and id(value) not in self.names:
            for inner in sorted(names & vars(value).keys()):
                held = vars(value)[inner]
                if not isinstance(held, ModuleType) or held.__name__ == f"{value.__name__}.{inner}":
                    self._named(held, value.__name__, inner, names)

    def _called(self, module: str, name: str) -> str:
        return name if module == self.home else f"{module}:{name}"

    def _is_own(self, module: str) -> bool:
        return module == self.home or _is_own(module)


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


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the members of a class that are not fields: unwrapped functions and values."""
    for name, held in vars(kind).items():
        if isinstance(held, staticmethod | classmethod):
            yield name, held.__func__
        elif isinstance(held, property):
            yield name, held.fget
        elif callable(held) or not (name.startswith("__") or name in registry.field_names(kind)):
            yield name, held


def _said(function: FunctionType) -> str:
    """Return a function's source in normalised form, or its bytecode if there is no source.

    A method that Python generated, for example for a dataclass, gives an empty text, since it depends only on fields.
    """
    try:
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(function.__code__))))
    except (OSError, TypeError, SyntaxError):
        return "" if function.__code__.co_filename == "<string>" else _compiled(function.__code__)


def _compiled(code: CodeType) -> str:
    """Return bytecode, constants and names as text."""
    consts = [_compiled(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts]
    return f"{code.co_code.hex()} {consts} {code.co_names}"


def _names(code: CodeType) -> set[str]:
    """Return the names that code uses, including those of nested functions."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _imports(function: FunctionType) -> set[str]:
    """Return the modules that a function imports when it is called."""
    found, package = set(), function.__globals__.get("__package__") or ""
    codes = [function.__code__]
    for code in codes:
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
        for n, step in enumerate(steps):
            if step.opname == "IMPORT_NAME":
                level = steps[n - 2].argval
                found.add(resolve_name("." * level + step.argval, package))
    return found
