"""Tests of the figures and judgements that experiment files derive from their finished studies."""

import importlib.util
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from attnlab.lab.results.outcome import outcomes
from tests.lab.synthetic import write_study

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def loaded(name):
    """Returns an experiment file as a module."""
    spec = importlib.util.spec_from_file_location(f"experiment_{name}", EXPERIMENTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def drawn(monkeypatch):
    """Returns a function that calls `figure` of an experiment on a folder and returns the saved axes and their path."""

    def draw(name, folder):
        module, saved = loaded(name), []
        keep = Figure.savefig
        monkeypatch.setattr(Figure, "savefig", lambda self, *a, **b: (saved.append(self), keep(self, *a, **b)))
        path = Path(module.figure(str(folder)))
        assert path.read_bytes().startswith(b"\x89PNG")
        return saved[0].axes[0], path

    return draw


def test_the_story_plots_each_model_over_source_length(drawn, tmp_path):
    groups = ("0-10 words", "11-15 words", "16-20 words", "21- words")
    variants = {"last-state": {"mean": 0.2}, "bahdanau": {"mean": 0.3}, "unfinished": {"finished": False}}
    home = write_study(tmp_path, variants, groups=groups)
    axes, path = drawn("seq2seq_story", home)
    assert path == tmp_path / "lengths.png"
    found = {outcome.name: outcome for outcome in outcomes(home)}
    lines = {line.get_label(): line for line in axes.lines}
    assert set(lines) == {"last-state", "bahdanau"}
    for name, line in lines.items():
        means = [100 * found[name].metrics[f"exact_match.{group}"].mean for group in groups]
        assert line.get_ydata().tolist() == pytest.approx(means)
        assert list(line.get_xdata()) == list(groups)


def test_capacity_plots_measured_and_published_values(drawn, tmp_path):
    home = write_study(tmp_path, {"elu1-40": {"mean": 0.01}, "elu1-60": {"mean": 0.03, "seeds": (0,)}}, groups=())
    axes, path = drawn("capacity", home)
    assert path == tmp_path / "capacity.png"
    (ours,) = axes.containers
    assert ours.get_label() == "elu1"
    assert ours.lines[0].get_xdata().tolist() == [40, 60]
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) > 10


def test_alike_counts_false_differences(monkeypatch, tmp_path):
    module = loaded("alike")
    monkeypatch.setattr(module, "STUDIES", 100)
    home = write_study(tmp_path, {"base": {"seeds": tuple(range(12)), "spread": 0.05, "mean": 0.5}}, groups=())
    first, *lines = module.judge(str(home))
    assert first.startswith("12 seeds of softmax, from ")
    assert [line.split("seeds")[0].split()[-1] for line in lines] == ["3", "5"]
    # Bimodal seeds differ only if each side has exactly one of the two clusters: 2 of 20 splits.
    heaps = [0.0, 1e-3, 2e-3, 1.0, 1.001, 1.002]
    monkeypatch.setattr(module, "STUDIES", 2000)
    assert module.told_apart(heaps, 3) == pytest.approx(2 / 20, abs=0.02)
    unfinished = write_study(tmp_path / "other", {"base": {"finished": False}})
    assert module.judge(str(unfinished)) == [f"{unfinished}: no finished study of seeds that all converged"]
