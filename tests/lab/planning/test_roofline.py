from attnlab.analysis import measure
from attnlab.analysis.roofline import Kind, Machine
from attnlab.cli.main import main
from attnlab.lab.planning.roofline import MOST, table

HERE = Machine("here", 1e11, 1e10)
A100 = Machine("A100", 312e12, 2e12, "bfloat16")


def test_a_line_states_the_bound_of_an_operation_on_each_machine():
    lines = table([Kind("[8 8] [8 8]", 2, 2000, 100), Kind("moves", 3, 0, 64)], [HERE, A100])
    assert lines[0].split() == ["operation", "times", "FLOP", "bytes", "FLOP/B", "here", "A100"]
    assert lines[1].split()[-3:] == ["20", "compute", "memory"]
    assert lines[2].split()[-3:] == ["0", "memory", "memory"]
    assert table([Kind(str(n), 1, 1, 1) for n in range(MOST + 3)], [HERE])[-1] == "  and 3 more"


SMALL = """
from attnlab.lab.study import Experiment, Study
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Language
from attnlab.tasks import Recall
from attnlab.training.config import Train

study = Study(
    Experiment(Recall(vocabulary=8, pairs=2), Language(width=16, heads=2), Train(steps=20)),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
)
"""


def test_show_classifies_every_operation_of_every_variant(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "machine", lambda: HERE)
    (tmp_path / "small.py").write_text(SMALL)
    assert main(["show", str(tmp_path / "small.py"), "--roofline", "train.batch_size=4"]) == 0
    out = capsys.readouterr().out
    assert "here: 100 GFLOP/s in float32 over 10 GB/s; compute-bound from 10 FLOP/B" in out
    assert "A100: 19.5 TFLOP/s in float32 over 2 TB/s; compute-bound from 9.75 FLOP/B" in out
    assert "bfloat16" not in out.split("Operations of one forward pass")[1]
    tables = out.split("Operations of one forward pass")[1]
    assert "\nsoftmax\n" in tables
    assert "\nlinear\n" in tables
    assert tables.count("[16 16]") >= 2


def test_half_precision_uses_the_half_precision_peak_of_a_machine(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "machine", lambda: HERE)
    (tmp_path / "small.py").write_text(SMALL)
    assert main(["show", str(tmp_path / "small.py"), "--roofline", "model.dtype=bfloat16"]) == 0
    out = capsys.readouterr().out.split("Operations of one forward pass")[1]
    assert "A100: 312 TFLOP/s in bfloat16 over 2 TB/s; compute-bound from 156 FLOP/B" in out
    assert "A100: 19.5" not in out
