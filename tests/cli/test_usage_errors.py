from pathlib import Path

import pytest

from attnlab.cli.main import main
from tests.cli.experiment import EXPERIMENT, FILE, tree

MALFORMED = [
    (["rnu", FILE], 2, "unknown command 'rnu'; nearest: 'run'; known: list, show"),
    (["--verison"], 2, "unknown option --verison; nearest: '--version'"),
    (["-q"], 2, "unknown option -q"),
    (["list", "mechanism"], 2, "list='mechanism' is not known; nearest: 'mechanisms'"),
    (["list", "tasks", "models"], 2, "attnlab list does not accept 'models'; usage: attnlab list [mechanisms|"),
    (["translate", "runs/x", "zwei"], 2, "attnlab translate does not accept 'zwei'; usage: attnlab translate RUN ["),
    (["show"], 2, "the following arguments are required: FILE"),
    (["show", "no.py"], 2, "no.py: no such experiment file; known: experiments/small.py"),
    (["show", "experiments"], 2, "experiments: no such experiment file"),
    (["show", FILE, "--quick"], 2, "attnlab show does not accept '--quick'"),
    (["run"], 2, "the following arguments are required: FILE; see attnlab run --help"),
    (["run", FILE, "--quik"], 2, "attnlab run does not accept '--quik'; nearest: '--quick'; known: "),
    (["run", FILE, "--qui"], 2, "attnlab run does not accept '--qui'; nearest: '--quick'"),
    (["run", FILE, "--out"], 2, "argument --out: expected one argument"),
    (["run", FILE, "--out", FILE], 2, f"--out {FILE} is a file, expected a folder"),
    (
        ["run", FILE, "--device", "gpuu"],
        2,
        "--device='gpuu' is not known; nearest: 'gpu'; known: cpu, gpu, tpu",
    ),
    (["run", FILE, "--workers", "0"], 2, "--workers 0 must be at least 1"),
    (["run", FILE, "--out=--"], 2, "--out=--: a value is missing"),
    (["show", "n" * 300], 2, f"{'n' * 300}: cannot be read: File name too long"),
    (["sample", "n" * 300, "--input", "a"], 4, f"{'n' * 300}/experiment.json: File name too long"),
    (["run", FILE, "model.width=1000000000000"], 2, "model.width=1000000000000 must be at least 1, and at most"),
    (["run", FILE, "model.layers=1000000"], 2, "model.layers=1000000 must be at least 1, and at most 1024"),
    (
        ["run", FILE, "model=language"],
        2,
        "model=Language needs data with vocabulary, length, but this task's data have",
    ),
    (["run", FILE, "--fresh=yes"], 2, "argument --fresh: ignored explicit argument 'yes'"),
    (["run", FILE, "steps"], 2, "'steps' must be field=value"),
    (["run", FILE, "=1"], 2, "'=1' must be field=value"),
    (["run", FILE, "train.step=1"], 2, "train.step: Train has no field 'step'; nearest: 'steps'"),
    (["run", FILE, "steps=1"], 2, "steps: Experiment has no field 'steps'; nearest: 'train.steps'"),
    (["run", FILE, "train.steps=1", "train.steps=2"], 2, "train.steps is given twice: '1' and '2'"),
    (["run", FILE, "train.steps=-1"], 2, "train.steps=-1 must be at least 1"),
    (["run", FILE, "train.steps=ten"], 2, "train.steps='ten' must be a whole number"),
    (["run", FILE, "train.learning_rate=nan"], 2, "train.learning_rate=nan must be a finite number"),
    (["run", FILE, "train.learning_rate=0"], 2, "train.learning_rate=0.0 must be a finite number above 0"),
    (["run", FILE, "train.seeds=0"], 2, "train.seeds=0 must be a number of seeds in 1 … 65536"),
    (["run", FILE, "train.seeds=-1"], 2, "train.seeds=-1 must be a number of seeds in 1 … 65536"),
    (["run", FILE, "train.steps=3000000000"], 2, "train.steps=3000000000 must be at most"),
    (["run", FILE, "train.learning_rate=1e39"], 2, "train.learning_rate=1e+39 must be in 1.2e-38"),
    (["run", FILE, "--out", "n" * 300], 4, f"{'n' * 300}: File name too long"),
    (["run", FILE, "--out", "/proc/nowhere"], 4, "/proc/nowhere/small/study.json: "),
    (["run", FILE, "train.seeds=1,1"], 2, "train.seeds=(1, 1) must list at least one seed, each only once"),
    (["run", FILE, "train.schedule=cosin"], 2, "train.schedule='cosin' must be one of constant, cosine"),
    (["run", FILE, "model.widht=8"], 2, "model.widht: Transformer has no field 'widht'; nearest: 'width'"),
    (["run", FILE, "model.heads=3"], 2, "model.heads=3 must divide model.width=16"),
    (["run", FILE, "model.heads=0"], 2, "model.heads=0 must be at least 1"),
    (["run", FILE, "model.dropout=1.5"], 2, "model.dropout=1.5 must be at least 0 and below 1"),
    (["run", FILE, "model.mechanism=sofmax"], 2, "model.mechanism='sofmax' is not known; nearest: 'softmax'"),
    (["run", FILE, "model.mechanism.blok=8"], 2, "model.mechanism.blok: no variant has a field 'blok'"),
    (["run", FILE, "model.mechanism.block=0"], 2, "model.mechanism: block=0 must be at least 1"),
    (
        ["run", FILE, "model.mechanism.feature=elu"],
        2,
        "model.mechanism.feature='elu' is not known; nearest: ",
    ),
    (["run", FILE, "model.position=sinus"], 2, "model.position='sinus' is not known; nearest: 'sinusoidal'"),
    (["run", FILE, "model.tied=maybe"], 2, "model.tied='maybe' must be true or false"),
    (["run", FILE, "task=revers"], 2, "task='revers' is not known; nearest: 'reverse'; known: dates"),
    (
        ["run", FILE, "task=sigmorphon", "task.language=hungarian"],
        2,
        "task.language='hungarian' is not known",
    ),
    (["report"], 2, "the following arguments are required: RUNS"),
    (["report", "runs"], 4, "runs contains no runs: no folder in it has an experiment.json"),
    (["report", FILE], 4, f"{FILE} contains no runs"),
    (["sample", "runs/x", "--input", "a"], 4, "runs/x is not a run folder; it has no experiment.json"),
    (["sample", "runs/x"], 2, "the following arguments are required: --input"),
    (["sample"], 2, "the following arguments are required: RUN, --input; see attnlab sample --help"),
    (["sample", "--input", "x"], 2, "the following arguments are required: RUN"),
    (["inspect", "runs/x"], 2, "the following arguments are required: --input"),
    (["inspect", "runs/x", "--input", "a"], 4, "runs/x is not a run folder; it has no experiment.json"),
    (["translate"], 2, "the following arguments are required: RUN"),
    (["translate", "runs/x"], 4, "runs/x is not a run folder; it has no experiment.json"),
    (["translate", "runs/x", "--batch", "two"], 2, "argument --batch: 'two' must be a whole number"),
    (["translate", "runs/x", "--batch", "0"], 2, "argument --batch: '0' must be at least 1"),
    (["translate", "runs/x", "--longer", "x"], 2, "argument --longer: invalid choice: 'x' (choose from "),
    (["translate", "runs/x", "--unknown", "x"], 2, "argument --unknown: invalid choice: 'x' (choose from "),
    (["score", "runs/x", "f", "--empty", "x"], 2, "argument --empty: invalid choice: 'x' (choose from "),
    (["translate", "runs/x", "--temperature", "warm"], 2, "argument --temperature: 'warm' must be a number"),
    (["translate", "runs/x", "--best", "2"], 2, "attnlab translate does not accept '--best'"),
    (["data", "cmudcit"], 2, "data='cmudcit' is not known; nearest: 'cmudict'"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), MALFORMED, ids=[" ".join(a) or "-" for a, _, _ in MALFORMED])
def test_malformed_lines_give_one_line_and_write_nothing(here, capfd, arguments, code, words):
    before = tree(here)
    assert main(arguments) == code
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"attnlab: error: {words}"), shown.err
    assert shown.err.count("\n") == 1
    assert "Traceback" not in shown.err
    assert tree(here) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("study = (", "experiments/broken.py:1: '(' was never closed"),
        ("x = 1", "experiments/broken.py: no `study` is defined"),
        (EXPERIMENT.replace("heads=2", "heads=3"), "experiments/broken.py:13: model.heads=3 must divide"),
        (EXPERIMENT.replace("heads=2", "head=2"), "experiments/broken.py:13: TypeError: "),
        (
            EXPERIMENT.replace("Linear,", "Lineer,"),
            "experiments/broken.py:7: ImportError: cannot import name",
        ),
    ],
)
def test_a_broken_experiment_gives_file_and_line(here, capfd, text, words):
    Path("experiments/broken.py").write_text(text)
    before = tree(here)
    assert main(["run", "experiments/broken.py"]) == 2
    shown = capfd.readouterr()
    assert shown.err.startswith(f"attnlab: error: {words}"), shown.err
    assert shown.err.count("\n") == 1
    assert tree(here) == before


@pytest.mark.parametrize("device", ["gpu", "tpu"])
def test_a_missing_device_is_refused(here, capfd, device):
    import jax

    if any(found.platform == device for found in jax.devices()):
        pytest.skip(f"there is a {device} here")
    assert main(["run", FILE, "--device", device]) == 2
    extra = {"gpu": "jax[cuda13]", "tpu": "jax[tpu]"}[device]
    line = (
        f'attnlab: error: --device {device}: jax finds no {device} here; if there is one, run pip install "{extra}"\n'
    )
    assert capfd.readouterr().err == line
    assert jax.devices()[0].platform != device


def test_the_nearest_of_many_experiment_files_are_named(here, capsys):
    for name in ("dates", "g2p", "scan", "norms", "positions", "recall"):
        (here / "experiments" / f"{name}.py").write_text("")
    assert main(["show", "experiments/date.py"]) == 2
    line = capsys.readouterr().err
    assert "; nearest: experiments/dates.py; attnlab list experiments lists all 7\n" in line
    assert main(["show", "experiments/xyz.py"]) == 2
    assert capsys.readouterr().err.endswith("no such experiment file; attnlab list experiments lists all 7\n")
