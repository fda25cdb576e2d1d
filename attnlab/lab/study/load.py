"""Experiment files, and files of code of one's own: Python, which is run. Nothing else here runs anything."""

import ast
import sys
import traceback
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from attnlab import registry
from attnlab.lab.study.sibling_imports import find_neighbours, use_neighbours
from attnlab.lab.study.study import Experiment, Study

FEW = 5  # experiment files that are all named where one is not found
EXPERIMENT = "attnlab_experiment_"  # what the module of an experiment file is called, before the file's own name
# What files put into the registries, by (registry, name): the value, and which file.
ADDED: dict[tuple[str, str], tuple[Any, Path]] = {}


def load_study(path: str | Path) -> Study:
    """The `study` (or the `experiment`) that a Python file holds, named after the file where it has no name.

    Raises ValueError, in one line with the file and its line, for what cannot be read.
    """
    path = Path(path)
    if (content := _content(path)) is None:
        raise ValueError(f"{path}: no such experiment file; {_near(path)}")
    module = _run(path, content)
    study = getattr(module, "study", None) or getattr(module, "experiment", None)
    if isinstance(study, Experiment):
        study = Study(study)
    if not isinstance(study, Study):
        found = "no `study` in it" if study is None else f"its `study` is of class {type(study).__name__}"
        raise ValueError(f"{path}: {found}; it must say study = Study(Experiment(…), over(…))")
    _check(path, study)
    return replace(study, name=study.name or path.stem)


def load_code(path: str | Path) -> ModuleType:
    """Run a Python file for what it defines and adds to the registries, as an experiment file may.

    It can import the modules beside it, which are read anew each time.

    Raises ValueError, in one line with the file and its line, for what cannot be run.
    """
    path = Path(path)
    if (content := _content(path)) is None:
        raise ValueError(f"{path}: no such file of code")
    return _run(path, content)


def _check(path: Path, study: Study) -> None:
    """Refuse what cannot be a task or a model, and what is said of a variant that there is not."""
    variants = study.variants()
    for experiment in variants.values():
        for field, does in (("task", "load"), ("model", "create")):
            value = getattr(experiment, field)
            if isinstance(value, type) or not hasattr(value, does):
                raise ValueError(f"{path}: {field}={value!r} must be a {field}, such as attnlab.{field.upper()}S holds")
    for field in ("published", "bands"):
        for name in getattr(study, field):
            if name not in variants:
                raise ValueError(registry.unknown(f"{path}: {field}: no variant {name!r}", name, variants))


def experiments(folder: Path = Path("experiments")) -> dict[str, str]:
    """The experiment files of a folder with the first line of their docstrings, read without running them."""
    return {str(path): _docstring(path) for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")}


def _near(path: Path) -> str:
    """The experiment files there are, or of more than a few those with the most similar names."""
    paths = {Path(file).stem: file for file in experiments()}
    if len(paths) <= FEW:
        return f"there are: {', '.join(paths.values()) or 'none in ./experiments'}"
    nearest = ", ".join(paths[name] for name in get_close_matches(path.stem, paths, 3))
    return f"{f'nearest: {nearest}; ' * bool(nearest)}attnlab list experiments names all {len(paths)}"


def _docstring(path: Path) -> str:
    try:
        document = ast.get_docstring(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError) as error:
        return f"(cannot be read: {error})"
    return (document or "").split("\n")[0]


def _content(path: Path) -> bytes | None:
    """What a file holds; None where there is none."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error


def _compile(path: Path, content: bytes) -> CodeType:
    try:
        return compile(content, str(path), "exec")
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise ValueError(f"{path}{line}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path}: cannot be read as Python: {error}") from error


def _run(path: Path, content: bytes) -> ModuleType:
    code = _compile(path, content)
    neighbours = find_neighbours(path, content)
    name = f"{EXPERIMENT}{path.stem}"
    while getattr(sys.modules.get(name), "__file__", str(path)) != str(path):
        name += "_"  # two files of one name, in different folders
    module = ModuleType(name)
    module.__file__ = str(path)
    before = {place: dict(registry.table(place)) for place in registry.PLACES}
    # Where a file defines configs of its own, their annotations are looked up by module name.
    sys.modules[name] = module
    use_neighbours(neighbours)
    try:
        # Not by an importer: it would leave compiled files beside the experiment.
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if hasattr(error, "exit_code"):
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{_place(error, path, neighbours)}: {kind}{error}") from error
    for place, held in before.items():
        for entry, value in registry.table(place).items():
            if held.get(entry) is not value:
                ADDED[place, entry] = value, path.resolve()
    return module


def _place(error: BaseException, path: Path, neighbours: dict[str, Path]) -> str:
    """The file and the line where code failed: the last of the experiment file and of those that it imports."""
    beside = {str(file): path.parent / file.relative_to(path.parent.resolve()) for file in neighbours.values()}
    known = {str(path): path} | beside
    if isinstance(error, SyntaxError) and error.filename in beside:
        return f"{beside[error.filename]}:{error.lineno or 0}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in known]
    return f"{known[frames[-1].filename]}:{frames[-1].lineno or 0}" if frames else f"{path}:0"
