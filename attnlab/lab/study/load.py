"""Load experiment files and files of your own code. These are Python files, and loading executes them."""

import ast
import sys
import traceback
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, ModuleType

from attnlab import registry
from attnlab.data.io.files import DataError
from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.sibling_imports import find_neighbours, use_neighbours
from attnlab.lab.study.study import Study
from attnlab.storage.json_file import FolderError

FEW = 5  # if there are at most so many experiment files, an error lists them all
EXPERIMENT = "attnlab_experiment_"  # prefix of the module name of an experiment file
# The registry entries that loaded files added: (registry, name) → (value, file).
ADDED: dict[tuple[str, str], tuple[object, Path]] = {}


def load_study(path: str | Path) -> Study:
    """Load the `study` (or the `experiment`) that a Python file defines. The file is executed.

    Args:
        path: the experiment file.

    Returns:
        The study. If it has no name, it is named after the file. An `Experiment` becomes a study of one variant.

    Raises:
        ValueError: in one line with file and line number, if the file does not exist, fails, or defines no study.
    """
    path = Path(path)
    if (content := _content(path)) is None:
        raise ValueError(f"{path}: no such experiment file; {_near(path)}")
    module = _run(path, content)
    study = getattr(module, "study", None) or getattr(module, "experiment", None)
    if isinstance(study, Experiment):
        study = Study(study)
    if not isinstance(study, Study):
        found = "no `study` is defined" if study is None else f"`study` is of type {type(study).__name__}"
        raise ValueError(f"{path}: {found}; expected study = Study(Experiment(…), over(…))")
    return replace(study, name=study.name or path.stem)


def load_code(path: str | Path) -> ModuleType:
    """Execute a Python file for its definitions and for what it adds to the registries.

    The file can import modules in its own folder. They are read anew each time.

    Args:
        path: the Python file.

    Returns:
        The module.

    Raises:
        ValueError: in one line with file and line number, if the file does not exist or fails.
    """
    path = Path(path)
    if (content := _content(path)) is None:
        raise ValueError(f"{path}: no such Python file")
    return _run(path, content)


def experiments(folder: Path = Path("experiments")) -> dict[str, str]:
    """Return the experiment files of a folder with the first lines of their docstrings, without executing them."""
    return {str(path): _docstring(path) for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")}


def _near(path: Path) -> str:
    """Return a hint with the existing experiment files, or, if there are many, those with the most similar names."""
    paths = {Path(file).stem: file for file in experiments()}
    if len(paths) <= FEW:
        return f"known: {', '.join(paths.values())}" if paths else "./experiments contains none"
    nearest = ", ".join(paths[name] for name in get_close_matches(path.stem, paths, 3))
    return f"{f'nearest: {nearest}; ' * bool(nearest)}attnlab list experiments lists all {len(paths)}"


def _docstring(path: Path) -> str:
    """Return the first line of a file's docstring."""
    try:
        document = ast.get_docstring(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError) as error:
        return f"(cannot be read: {error})"
    return (document or "").split("\n")[0]


def _content(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error


def _compile(path: Path, content: bytes) -> CodeType:
    """Compile a file. Raises ValueError with the line for a syntax error."""
    try:
        return compile(content, str(path), "exec")
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise ValueError(f"{path}{line}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path}: cannot be read as Python: {error}") from error


def _run(path: Path, content: bytes) -> ModuleType:
    """Execute a file as a module, and record in `ADDED` what it puts into the registries."""
    code = _compile(path, content)
    neighbours = find_neighbours(path, content)
    name = f"{EXPERIMENT}{path.stem}"
    while getattr(sys.modules.get(name), "__file__", str(path)) != str(path):
        name += "_"  # another file of the same name, in a different folder, is loaded already
    module = ModuleType(name)
    module.__file__ = str(path)
    before = {place: dict(registry.table(place)) for place in registry.PLACES}
    # `get_type_hints` looks up the annotations of configs that the file defines by the name of their module.
    sys.modules[name] = module
    use_neighbours(neighbours)
    try:
        # An importer would leave compiled files next to the experiment file.
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, DataError | FolderError):
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{_place(error, path, neighbours)}: {kind}{error}") from error
    for place, held in before.items():
        for entry, value in registry.table(place).items():
            if held.get(entry) is not value:
                ADDED[place, entry] = value, path.resolve()
    return module


def _place(error: BaseException, path: Path, neighbours: dict[str, Path]) -> str:
    """Return "file:line" of the innermost frame in the experiment file or in a module of its folder."""
    siblings = {str(file): path.parent / file.relative_to(path.parent.resolve()) for file in neighbours.values()}
    known = {str(path): path} | siblings
    if isinstance(error, SyntaxError) and error.filename in siblings:
        return f"{siblings[error.filename]}:{error.lineno or 0}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in known]
    return f"{known[frames[-1].filename]}:{frames[-1].lineno or 0}" if frames else f"{path}:0"
