"""The modules beside an experiment file that it imports: `import helper` finds `helper.py` in the file's folder."""

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
    """Reads a module's source, and leaves no compiled file beside it."""

    def set_data(self, path, data, *, _mode=0o666):
        """Write nothing."""


class _Finder(MetaPathFinder):
    """Finds the neighbours of the files that were run, by their names; the last file run decides."""

    def __init__(self):
        self.files: dict[str, Path] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The neighbour of that name, or None."""
        if path is not None or (file := self.files.get(fullname)) is None:
            return None
        inside = [str(file.parent)] if file.name == "__init__.py" else None
        loader = _Uncached(fullname, str(file))
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=inside)


_FINDER = _Finder()


def find_neighbours(path: Path, content: bytes) -> dict[str, Path]:
    """The files in a file's folder that it imports, and that these import in turn, by the name of the module.

    A name of Python's own library, and `attnlab`, are never taken from there. Any other name is, as Python does for a
    script, also where an installed package has it.
    """
    found: dict[str, Path] = {}
    waiting = [content]
    while waiting:
        for name in _imported(waiting.pop()):
            beside = [path.parent / f"{name}.py", path.parent / name / "__init__.py"]
            file = next((each.resolve() for each in beside if each.is_file()), None)
            if file is None or name in found or name in sys.stdlib_module_names or name == "attnlab":
                continue
            found[name] = file
            waiting.append(file.read_bytes())
    return found


def use_neighbours(files: dict[str, Path]) -> None:
    """Let imports find these modules, and read them anew where they were imported before."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _FINDER.files.update(files)
    for name in list(sys.modules):
        if name.partition(".")[0] in files:
            del sys.modules[name]


def _imported(content: bytes) -> Iterator[str]:
    """The modules that code imports, each without what is inside it; none where the code cannot be read."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
