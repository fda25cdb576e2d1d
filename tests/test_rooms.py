"""Checks what each room (package) may import, that imports stay light, and that every file is in its list."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "attnlab"
# The rooms (packages) of attnlab and the libraries that each room may import. Rooms only import rooms below them.
GROUND = {"console", "storage", "plotting"}
ATTENTION = {"ops", "mechanisms", "modules", "models", "analysis"}
WORK = {"data", "tasks", "decoding", "training"}
BELOW = GROUND | {"system"} | ATTENTION | WORK
LAB = {
    "lab.statistics": set(),
    "lab.study": set(),
    "lab.runs": {"lab.study"},
    "lab.planning": {"lab.study", "lab.runs"},
    "lab.trained": {"lab.study", "lab.runs", "lab.statistics"},
    "lab.results": {"lab.study", "lab.runs", "lab.statistics"},
    "lab.execution": {"lab.study", "lab.runs", "lab.planning", "lab.trained", "lab.results", "lab.statistics"},
    "lab.reporting": {"lab.study", "lab.runs", "lab.trained", "lab.results", "lab.statistics"},
}
ROOMS: dict[str, tuple[set[str], set[str] | None]] = {  # None: any library
    "console": (set(), {"rich", "numpy"}),
    "storage": (set(), set()),
    "plotting": (set(), {"numpy", "matplotlib"}),
    "system": ({"storage"}, {"jax"}),
    "ops": (set(), {"jax", "jaxtyping", "numpy"}),
    "mechanisms": ({"ops"}, {"jax", "jaxtyping", "numpy"}),
    "modules": ({"ops", "mechanisms"}, {"jax", "jaxtyping", "numpy", "flax"}),
    "models": ({"ops", "mechanisms", "modules"}, {"jax", "jaxtyping", "numpy", "flax"}),
    "functional": ({"ops", "mechanisms"}, {"jax", "jaxtyping", "numpy"}),
    "decoding": (set(), {"jax", "jaxtyping"}),
    "data": ({"storage"}, {"numpy", "scipy", "PIL", "babel", "tokenizers"}),
    "tasks": (
        {"console", "data", "decoding", "plotting"},
        {"numpy", "jax", "jaxtyping", "optax", "sacrebleu", "scipy"},
    ),
    "training": ({"storage", "system"}, {"jax", "jaxtyping", "numpy", "optax", "orbax"}),
    "analysis": ({"ops", "mechanisms", "modules", "models"}, {"jax", "jaxtyping", "numpy", "flax", "scipy"}),
    "bench": (BELOW - {"data", "tasks", "decoding"}, None),
    **{room: (BELOW | below, None) for room, below in LAB.items()},
    "lab.launch": (BELOW | {*LAB}, None),
    "lab": (set(), set()),  # lists the names it exports, and imports them on first use
    "cli": (BELOW | {*LAB, "lab.launch", "bench"}, None),
    "__main__": ({"cli", "system"}, set()),
    "registry": (set(), set()),
    "pattern": (set(), set()),
    "documented": (set(), set()),
    "": (set(), set()),
}
ANY = {"registry", "documented", "pattern", ""}  # modules that any room may import: they import no room themselves
UNWANTED = {
    "tensorflow",
    "absl",
    "ml_collections",
    "hydra",
    "chex",
    "einops",
    "pydantic",
    "torch",
    "wandb",
    "pickle",
}
FILES = sorted(HOUSE.rglob("*.py"))


def imported(path):
    """Yields the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module


def room_of(module):
    """Returns the room of a module: `attnlab.lab.study.load` is in lab.study, `attnlab.ops.mask.base` in ops."""
    _, *parts = module.split(".")
    return ".".join(parts[:2] if parts[:1] == ["lab"] else parts[:1])


def name_of(path):
    """Returns the name of the module in a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in FILES}


def ours(path):
    """Returns the modules of attnlab that a file imports, except itself."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {full if (full := f"{node.module}.{name.name}") in MODULES else node.module for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {module for module in found if module in MODULES} - {name_of(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(HOUSE).as_posix())
def test_rooms_import_only_rooms_below(path):
    room = room_of(name_of(path))
    below, libraries = ROOMS[room]
    for module in ours(path):
        assert room_of(module) in below | {room} | ANY, f"{room} imports {module}"
    for module in imported(path):
        first = module.split(".")[0]
        assert first not in UNWANTED
        if libraries is not None and first not in {"attnlab", *sys.stdlib_module_names}:
            assert first in libraries, f"{room} imports {module}"


def test_no_rooms_import_each_other():
    order = {}

    def floor(room):
        below, _ = ROOMS[room]
        if room not in order:
            order[room] = None  # a cycle would find None here
            order[room] = 1 + max((floor(other) for other in below), default=0)
        assert order[room] is not None, f"{room} is below itself"
        return order[room]

    assert max(map(floor, ROOMS)) >= 5


def test_no_files_import_each_other():
    arrows = {name: ours(path) for name, path in MODULES.items()}
    arrows = {name: {other for other in found if not name.startswith(f"{other}.")} for name, found in arrows.items()}
    while arrows:
        leaves = {name for name, found in arrows.items() if not found & arrows.keys()}
        assert leaves, f"these import each other, directly or by way of others: {sorted(arrows)[:10]}"
        arrows = {name: found for name, found in arrows.items() if name not in leaves}


def test_every_file_of_the_mechanisms_is_in_their_list():
    from attnlab.mechanisms import MECHANISMS

    used = {type(mechanism).__module__.rsplit(".", 1)[-1] for mechanism in MECHANISMS.values()}
    framework = {
        "__init__",
        "base",
        "cache",
        "causal",
        "checked",
        "chunked",
        "cost",
        "inputs",
        "maps",
        "pairwise",
        "pattern_softmax",
        "position_state",
        "query_heads",
        "recurrent",
        "rotated",
        "whole",
        "wrapper",
    }
    assert {path.stem for path in (HOUSE / "mechanisms").glob("*.py")} == used | framework


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import attnlab", {"jax", "numpy", "flax"}),
        ("import attnlab.cli", {"jax", "numpy", "tyro", "rich"}),
        ("import attnlab.data.io.files, attnlab.data.synthetic.dates", {"jax", "babel"}),
        ("import attnlab.tasks", {"jax"}),
        ("import attnlab.lab.study, attnlab.training.config", {"jax"}),
        (
            "import attnlab.models, attnlab.training.loop",
            {"orbax", "scipy", "matplotlib", "tyro", "babel"},
        ),
        ("import attnlab.lab.launch", {"orbax", "matplotlib", "tyro", "IPython"}),
    ],
)
def test_imports_stay_light(statement, absent):
    code = f"{statement}; import sys; print(*sorted({absent!r} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.split() == []


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.py")), ids=lambda path: path.stem)
def test_every_experiment_documents_its_claim_and_command_and_loads(path):
    from attnlab.lab.study.load import load_study

    document = ast.get_docstring(ast.parse(path.read_text()))
    for word in ("Claim:", "Command:", "Minutes on two cores:", "Expected:"):
        assert word in document
    assert f"experiments/{path.name}" in document
    assert "TODO" not in document
    assert load_study(path).variants(quick=True)


# One experiment for each kind of system. Creating a model fails if its position cannot serve its mechanism.
@pytest.mark.parametrize(
    "name",
    ["g2p", "vit_vs_cnn", "cora", "spoken_digits", "shakespeare_larger", "bert", "sagan", "detr", "long_range"],
)
def test_one_override_selects_linear_attention_in_every_system(name):
    from attnlab.lab.study.load import load_study
    from attnlab.lab.study.overrides import apply
    from attnlab.mechanisms import MECHANISMS

    study = apply(load_study(ROOT / "experiments" / f"{name}.py"), ["model.mechanism=linear"])
    models = [experiment.model for experiment in study.variants().values()]
    assert MECHANISMS["linear"] in [getattr(model, "mechanism", None) for model in models]
    # No encoder or decoder keeps a mechanism of its own.
    served = [getattr(model, "attentions", {}) for model in models]
    own = [mechanism for parts in served for name, mechanism in parts.items() if name in ("encoder", "decoder")]
    assert all(mechanism == MECHANISMS["linear"] for mechanism in own)
