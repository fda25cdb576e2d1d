"""Imports between files in the folder of an experiment file: `import helper` finds `helper.py` there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


class _Uncached(SourceFileLoader):
    """A source loader that does not write compiled files."""

    def set_data(self, path, data, *, _mode=0o666):
        """Do not write a compiled file."""


class _Finder(MetaPathFinder):
    """Finds modules in the folders of the files that were executed. For equal names the last file takes precedence."""

    def __init__(self):
        self.files: dict[str, Path] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module of that name, or None."""
        if path is not None or (file := self.files.get(fullname)) is None:
            return None
        inside = [str(file.parent)] if file.name == "__init__.py" else None
        loader = _Uncached(fullname, str(file))
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=inside)


_FINDER = _Finder()


def find_neighbours(path: Path, content: bytes) -> dict[str, Path]:
    """Find the files in a file's folder that it imports, directly or through each other.

    Names of the standard library, and `attnlab`, are never taken from the folder. Any other name is, even if an
    installed package has the same name, as Python does for a script.

    Args:
        path: the file.
        content: its source.

    Returns:
        The files by module name.
    """
    found: dict[str, Path] = {}
    waiting = [content]
    while waiting:
        for name in _imported(waiting.pop()):
            candidates = [path.parent / f"{name}.py", path.parent / name / "__init__.py"]
            file = next((each.resolve() for each in candidates if each.is_file()), None)
            if file is None or name in found or name in sys.stdlib_module_names or name == "attnlab":
                continue
            found[name] = file
            waiting.append(file.read_bytes())
    return found


def use_neighbours(files: dict[str, Path]) -> None:
    """Let imports find these modules. Modules that were imported before are read again."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _FINDER.files.update(files)
    for name in list(sys.modules):
        if name.partition(".")[0] in files:
            del sys.modules[name]


def _imported(content: bytes) -> Iterator[str]:
    """Yield the top-level names of the modules that code imports, or nothing if the code cannot be parsed."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
