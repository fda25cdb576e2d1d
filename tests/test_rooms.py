"""The rooms: what may import what, that imports stay light, and that every file is in its list."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "attnlab"
# A room may import those named here, of ours and of others'.
ROOMS = {
    "ops": ({"ops"}, {"jax", "jaxtyping", "numpy"}),
    "mechanisms": ({"ops", "mechanisms"}, {"jax", "jaxtyping", "numpy"}),
    "modules": ({"ops", "mechanisms", "modules"}, {"jax", "jaxtyping", "numpy", "flax"}),
    "models": ({"ops", "mechanisms", "modules", "models"}, {"jax", "jaxtyping", "numpy", "flax"}),
    "decoding": ({"decoding"}, {"jax", "jaxtyping"}),
    "data": ({"data"}, {"numpy", "scipy", "PIL", "babel", "tokenizers"}),
    "tasks": ({"tasks", "data", "decoding"}, {"numpy", "jax", "optax", "sacrebleu", "scipy", "matplotlib"}),
    "training": ({"training"}, {"jax", "jaxtyping", "numpy", "optax", "orbax"}),
    "analysis": ({"ops", "mechanisms", "modules", "models", "analysis"}, {"jax", "jaxtyping", "numpy", "scipy"}),
}
ANY = {"registry"}  # what any room may import of ours: it imports nothing itself
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
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(HOUSE).as_posix())
def test_arrows_only_go_down(path):
    room = path.relative_to(HOUSE).parts[0]
    for module in imported(path):
        first, *rest = module.split(".")
        assert first not in UNWANTED
        if room not in ROOMS or first in sys.stdlib_module_names:
            continue
        ours, others = ROOMS[room]
        if first == "attnlab":
            assert set(rest[:1]) & (ours | ANY), f"{room} imports {module}"
        else:
            assert first in others, f"{room} imports {module}"


def test_every_file_of_the_mechanisms_is_in_their_list():
    from attnlab.mechanisms import MECHANISMS

    used = {type(mechanism).__module__.rsplit(".", 1)[-1] for mechanism in MECHANISMS.values()}
    framework = {"__init__", "around", "base", "cache", "causal", "chunked", "clock", "cost", "given", "maps"}
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
def test_every_experiment_says_its_claim_command_minutes_and_number_and_loads(path):
    from attnlab.lab.study.load import load_study

    document = ast.get_docstring(ast.parse(path.read_text()))
    for word in ("Claim:", "Command:", "Minutes on two cores:", "Expected:"):
        assert word in document
    assert f"experiments/{path.name}" in document
    assert "TODO" not in document
    assert load_study(path).variants(quick=True)


# One of each kind of system. A model is refused when it is put together with what its position cannot serve.
@pytest.mark.parametrize(
    "name",
    ["g2p", "vit_vs_cnn", "cora", "spoken_digits", "shakespeare_larger", "bert", "sagan", "detr", "long_range"],
)
def test_linear_attention_is_one_field_away_in_every_system(name):
    from attnlab.lab.study.load import load_study
    from attnlab.lab.study.overrides import apply
    from attnlab.mechanisms import MECHANISMS

    study = apply(load_study(ROOT / "experiments" / f"{name}.py"), ["model.mechanism=linear"])
    models = [experiment.model for experiment in study.variants().values()]
    assert MECHANISMS["linear"] in [getattr(model, "mechanism", None) for model in models]
    # No encoder or decoder keeps another mechanism under that field's name.
    served = [getattr(model, "attentions", {}) for model in models]
    own = [mechanism for parts in served for name, mechanism in parts.items() if name in ("encoder", "decoder")]
    assert all(mechanism == MECHANISMS["linear"] for mechanism in own)
