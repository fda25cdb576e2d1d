"""Checks that the notebooks are built from their sources and run from top to bottom."""

import re
import runpy
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
build = runpy.run_path(str(ROOT / "notebooks" / "build.py"))
TRAINS = ("reading_a_study", "your_own_mechanism")
NAMES = [path.stem for path in build["sources"]()]


def built(name):
    return build["notebook"]((ROOT / "notebooks" / f"{name}.py").read_text())


def test_there_are_four_notebooks():
    assert NAMES == ["attention_by_hand", "one_recurrence", "reading_a_study", "your_own_mechanism"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_equals_its_source(name):
    file = (ROOT / "notebooks" / f"{name}.ipynb").read_text()
    assert file == build["text"](built(name)), "python notebooks/build.py writes it again"
    assert not any(cell.get("outputs") for cell in nbformat.reads(file, 4).cells)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cell_installs_attnlab_if_missing_and_keeps_jax(name, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(subprocess, "run", lambda command, **how: asked.append((command, how)))
    first = next(cell.source for cell in built(name).cells if cell.cell_type == "code")
    exec(first, {})
    assert asked == [], "nothing, where it is"
    monkeypatch.setitem(sys.modules, "attnlab", None)
    monkeypatch.chdir(tmp_path)
    # The bare name is not registered in the package index. A folder of that name is a checkout.
    for source in ("", "attnlab"):
        with pytest.raises(ModuleNotFoundError, match=r"^attnlab is not installed: set SOURCE above to the folder of"):
            exec(first.replace('SOURCE = ""', f"SOURCE = {source!r}"), {})
    assert asked == []
    (tmp_path / "attnlab").mkdir()
    checkout = first.replace('SOURCE = ""', 'SOURCE = "attnlab"')
    exec(checkout, {})
    ((command, how),) = asked
    assert command == [
        *(sys.executable, "-m", "pip", "install", "-q", str(tmp_path / "attnlab")),
        *(f"{package}=={version(package)}" for package in ("jax", "jaxlib")),
    ]
    assert how == {"check": True}
    exec(first.replace('SOURCE = ""', 'SOURCE = "git+https://example.org/attnlab"'), {})
    assert asked[1][0][5] == "git+https://example.org/attnlab"
    monkeypatch.setattr("importlib.metadata.version", lambda package: "0.9.0")
    with pytest.raises(ImportError, match=r"^attnlab needs jax 0\.10\.2 or newer, and 0\.9\.0 is installed$"):
        exec(checkout, {})


def test_nothing_installs_attnlab_from_pypi_by_name():
    """The name is not registered in the package index. Whoever registers it could run code on readers' machines."""
    files = [*ROOT.glob("*.*"), *(ROOT / ".ci").iterdir()]
    for folder in ("attnlab", "notebooks", "experiments", "benchmarks"):
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".ipynb", ".md")]
    bare = re.compile(r"(pip3?|uv) install[^\n]*\sattnlab\b(?!/)|attnlab\[|\"install\"[^\n]*\"attnlab\"")
    found = [(path, match[0]) for path in files if path.is_file() for match in bare.finditer(path.read_text())]
    assert found == []
    assert bare.search("pip install -q attnlab") and bare.search("pip install 'attnlab[peers]'")  # noqa: PT018


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_draws_its_figures(name):
    from nbclient import NotebookClient

    made = built(name)
    NotebookClient(made, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    outputs = [output for cell in made.cells for output in cell.get("outputs", [])]
    assert not any("Traceback" in str(output) for output in outputs)
    shown = [output.data.get("text/plain", "") for output in outputs if output.output_type == "display_data"]
    # Each run shows one line, which is updated in place.
    assert [text for text in shown if "variant 2 of 2" in text] == [text for text in shown if ": step " in text]
    assert sum("step 240 of 240, loss " in text for text in shown) == (name in TRAINS)
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert kinds & {"image/png", "text/html"}


def test_the_recurrence_follows_the_sizes_that_a_reader_sets(capsys, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", plt.close)
    cells = [cell.source for cell in built("one_recurrence").cells if cell.cell_type == "code"]
    scope = {}
    for cell in cells[1:4]:
        exec(cell.replace("T, K = 64, 8", "T, K = 20, 4"), scope)
    assert scope["q"].shape == (20, 4)
    assert "softmax  rank  20 of 20\nlinear   rank   4 of 20\n" in capsys.readouterr().out


@pytest.mark.parametrize("margin", [0.02, 0.2])
def test_the_verdict_by_hand_is_that_of_the_study(capsys, tmp_path, margin):
    from types import SimpleNamespace

    from attnlab.lab import RunFolder
    from attnlab.lab.results.comparison import comparison
    from tests.lab.made import outcome

    # The reader compares other mechanisms, and all differences are equal.
    values = {"delta": [0.5, 0.5, 0.5], "ssd": [0.6, 0.6, 0.6]}
    for name, numbers in values.items():
        result = {"seeds": [0, 1, 2], "examples": 100, "metrics": {"accuracy": {"values": numbers}}}
        RunFolder(tmp_path / name).path.mkdir()
        RunFolder(tmp_path / name).write("result", result | {"metric": "accuracy", "higher": True, "diverged": []})
    by_hand = next(cell.source for cell in built("reading_a_study").cells if "compare(" in cell.source)
    scope = {
        "study": SimpleNamespace(variants=lambda: {"delta": None, "ssd": None}, margin=margin),
        "results": SimpleNamespace(folder=tmp_path),
    }
    exec(by_hand, scope)
    found = [
        outcome(name, numbers, "accuracy", order=n, margin=margin, examples=100)
        for n, (name, numbers) in enumerate(values.items())
    ]
    assert scope["found"] == comparison(found).verdicts["ssd"]
    assert f"ssd is {'better' if margin == 0.02 else 'same'}: +0.100" in capsys.readouterr().out


def test_a_cell_is_text_or_code():
    made = build["notebook"]("# %% [markdown]\n# # Title\n#\n# text\n\n# %%\nx = 1\n\n# %%\n# a comment\n")
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        ("markdown", "# Title\n\ntext"), ("code", "x = 1"), ("code", "# a comment"),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="before the first"):
        build["notebook"]("x = 1\n# %%\n")
