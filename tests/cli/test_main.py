import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import attnlab
from attnlab.cli.main import main
from attnlab.cli.verbs import VERBS
from attnlab.system.signals import Interrupted
from tests.lab.looked import FOUND

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = '''"""Softmax against linear, small.

    attnlab run small.py
"""
from attnlab.lab.study import Experiment, Study
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Transformer
from attnlab.tasks import Reverse
from attnlab.training.config import Train

study = Study(
    Experiment(Reverse(), Transformer(width=16, heads=2), Train(steps=20)),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
    "which?",
    quick={"train.steps": 2},
)
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with one experiment, as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ATTNLAB_DEBUG", raising=False)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "small.py").write_text(EXPERIMENT)
    return tmp_path


@pytest.fixture
def fake(monkeypatch):
    """Puts functions in the place of a module of the laboratory."""

    def fake(name, **functions):
        module = ModuleType(name)
        vars(module).update(functions)
        monkeypatch.setitem(sys.modules, name, module)

    return fake


@pytest.fixture
def runs(here):
    """A folder of two runs that nobody trained."""
    for variant in ("softmax", "linear"):
        (here / "runs" / "small" / variant).mkdir(parents=True)
        (here / "runs" / "small" / variant / "experiment.json").write_text("{}")
    return here / "runs"


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# What goes wrong.

FILE = "experiments/small.py"
MALFORMED = [
    (["rnu", FILE], 2, "unknown command 'rnu'; nearest: 'run'; known: list, show"),
    (["--verison"], 2, "unknown option --verison; nearest: '--version'"),
    (["-q"], 2, "unknown option -q"),
    (["list", "mechanism"], 2, "list='mechanism' is not known; nearest: 'mechanisms'"),
    (["list", "tasks", "models"], 2, "attnlab list does not accept 'models'"),
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
    (["sample", "--input", "x"], 2, "the following arguments are required: RUN"),
    (["inspect", "runs/x"], 2, "the following arguments are required: --input"),
    (["inspect", "runs/x", "--input", "a"], 4, "runs/x is not a run folder; it has no experiment.json"),
    (["translate"], 2, "the following arguments are required: RUN"),
    (["translate", "runs/x"], 4, "runs/x is not a run folder; it has no experiment.json"),
    (["translate", "runs/x", "--batch", "two"], 2, "argument --batch: 'two' must be a whole number"),
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
def test_a_device_that_is_absent(here, capfd, device):
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


def test_a_terminal_with_a_small_encoding(here):
    done = code(["list", "mechanisms"], here, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Linear attention, ?(x) = " in done.stdout


def code(command, folder, **settings):
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | settings
    return subprocess.run(
        [sys.executable, "-m", "attnlab", *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )


@pytest.mark.parametrize(
    ("command", "leaves"),
    [(["--version"], 0), (["rnu"], 2), (["run", FILE, "model.heads=3"], 2), (["sample", "x", "--input", "y"], 4)],
)
def test_as_a_process(here, command, leaves):
    done = code(command, here)
    assert done.returncode == leaves
    assert done.stderr.count("\n") == (1 if leaves else 0)
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away(here):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        [sys.executable, "-m", "attnlab", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=here,
        env=environment,
    )
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    assert program.wait() == 141


def shell(words, here, **settings):
    """`attnlab` under a shell's redirections; the standard streams are read where they are not redirected."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""} | settings
    command = f"{sys.executable} -m attnlab {words}"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=here, env=environment)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--version", "list", "show --help"])
@pytest.mark.parametrize(("where", "why"), [(">&-", "the stream is closed"), (">/dev/full", "No space left on device")])
def test_a_standard_output_that_cannot_be_written_is_said_in_a_line(here, words, where, why, unbuffered):
    if not os.path.exists("/dev/full"):
        pytest.skip("no full device here")
    done = shell(f"{words} {where}", here, PYTHONUNBUFFERED=unbuffered)
    line = f"cannot write to standard output: {why}"
    if words == "list" and where == ">&-":
        line = "standard output is closed, but attnlab list writes its results to it"
    assert done.stderr == f"attnlab: error: {line}\n"
    assert done.returncode == 4


def test_a_command_that_only_prints_does_not_begin_without_a_standard_output(here):
    done = shell("sample x --input y >&-", here)
    line = "attnlab: error: standard output is closed, but attnlab sample writes its results to it\n"
    assert (done.returncode, done.stderr) == (4, line)


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_a_standard_error_that_cannot_be_written_changes_nothing_else(here, where):
    done = shell(f"list scores {where}", here)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "scores", "")
    # And what was meant for it does not come to stand among the results.
    done = shell(f"rnu {where}", here)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_closed_streams_are_not_taken_by_the_next_file_that_is_opened(tmp_path):
    code = (
        "import os; from attnlab.system import streams; streams.prepare(); file = open('a', 'w'); print(file.fileno());"
        "os.write(2, b'of a library'); os.write(0, b'x')"
    )
    command = f'{sys.executable} -c "{code}" 2>&- <&-'
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert int(done.stdout) > 2
    assert (tmp_path / "a").read_text() == ""


# What goes right.


def test_help_loads_nothing_heavy(here):
    heavy = "{'jax', 'numpy', 'rich', 'tyro'}"
    loaded = f"import sys; from attnlab.cli.main import main; main(['--help']); print(set(sys.modules) & {heavy})"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, cwd=here, env=environment)
    assert done.stdout.endswith("set()\n")
    for verb in VERBS:
        assert f"  {verb} " in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(capsys, verb):
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"usage: attnlab {verb} ")
    assert shown.err == ""


def test_no_command_shows_the_usage(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("attnlab: a laboratory for attention\n\nusage: attnlab ")
    assert shown.err == ""


def test_of_many_experiment_files_the_nearest_are_named(here, capsys):
    for name in ("dates", "g2p", "scan", "norms", "positions", "recall"):
        (here / "experiments" / f"{name}.py").write_text("")
    assert main(["show", "experiments/date.py"]) == 2
    line = capsys.readouterr().err
    assert "; nearest: experiments/dates.py; attnlab list experiments lists all 7\n" in line
    assert main(["show", "experiments/xyz.py"]) == 2
    assert capsys.readouterr().err.endswith("no such experiment file; attnlab list experiments lists all 7\n")


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"attnlab {attnlab.__version__}\n"


def test_list(here, capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for name in ("softmax", "linear", "sinusoidal", "rotary", "transformer", "dates", "reverse", FILE):
        assert f"  {name} " in out
    assert "Softmax against linear, small." in out


def test_list_one_kind(here, capsys):
    assert main(["list", "positions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "positions"
    assert {line.split()[0] for line in lines[1:]} == set(attnlab.POSITIONS)


def test_show(here, capsys, fake):
    fake(
        "attnlab.lab.planning.costs",
        describe=lambda study, found: [{"variant": name, "training": 2e12} for name in found.experiments],
    )
    fake(
        "attnlab.lab.planning.ledger",
        Ledger=lambda: SimpleNamespace(problem=lambda experiment: SimpleNamespace(pretraining_steps=0, notes=())),
    )
    assert main(["show", FILE, "model.width=32", "model.mechanism.normalise=false"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: which?"
    words = [line.split() for line in lines]
    assert ["model.width", "32"] in words
    assert ["≠", "model.mechanism", "softmax:", "softmax"] in words
    assert ["≠", "model.mechanism.normalise", "linear:", "false"] in words
    assert lines[-4:-1] == ["variant  FLOPs, all lanes", "softmax           2 TFLOP", "linear            2 TFLOP"]
    assert lines[-1] == "all 2 variants: 4 TFLOP"
    assert tree(here) == ["experiments", FILE]


@pytest.fixture
def ran(here, fake):
    """`run` with nothing trained: what it was called with, and the table it prints."""
    calls = []

    def run(study, **options):
        calls.append(SimpleNamespace(study=study, **options))
        return SimpleNamespace(folder=Path("runs/small"), report=Path("runs/small/report.html"), code=run.code)

    run.code = 0
    fake("attnlab.lab.launch", run=run)
    fake("attnlab.lab.results.table", results_table=lambda folder: f"table of {folder}")
    return SimpleNamespace(calls=calls, run=run)


def test_run(ran, capsys):
    assert main(["run", FILE, "train.steps=5", "--quick", "model.mechanism=linear", "--out", "elsewhere"]) == 0
    (call,) = ran.calls
    assert list(call.study.variants()) == ["linear"]
    assert call.study.base.train.steps == 5
    assert (call.study.name, call.out, call.quick, call.fresh) == ("small", Path("elsewhere"), True, False)
    assert call.command == f"attnlab run {FILE} train.steps=5 model.mechanism=linear --quick"
    told = (
        "table of runs/small",
        "this was a preview (--quick); its numbers are not meaningful",
        "report: runs/small/report.html",
    )
    assert capsys.readouterr().out.splitlines() == [*told]


def test_run_by_default(ran, capsys):
    assert main(["run", FILE, "--device", "cpu"]) == 0
    assert "preview" not in capsys.readouterr().out
    (call,) = ran.calls
    assert (call.out, call.quick, call.fresh) == (Path("runs"), False, False)


def test_the_recorded_command_has_no_absolute_path(ran, here):
    assert main(["run", str(here / FILE), "task.seed=1"]) == 0
    assert ran.calls[0].command == "attnlab run small.py task.seed=1"


def test_diverged_lanes_exit_with_5(ran, capsys):
    ran.run.code = 5
    assert main(["run", FILE]) == 5
    shown = capsys.readouterr()
    assert "table of" in shown.out
    assert shown.err.count("\n") == 1
    assert "diverged" in shown.err


@pytest.mark.parametrize(
    ("where", "fresh"), [("before any variant started", True), ("at step 3, which is saved", False)]
)
def test_the_command_to_continue_keeps_fresh_until_folders_are_cleared(monkeypatch, capsys, where, fresh):
    def stopped(options):
        raise Interrupted(signal.SIGINT, where)

    monkeypatch.setattr("attnlab.cli.commands._ready", stopped)
    assert main(["run", FILE, "--fresh"]) == 130
    go_on = f"attnlab run {FILE} --out runs{' --fresh' * fresh}"
    assert capsys.readouterr().err.endswith(f"stopped by SIGINT {where}; to continue: {go_on}\n")


@pytest.mark.parametrize("folder", ["runs", "runs/small", "runs/small/linear"])
def test_report(runs, capsys, monkeypatch, folder):
    monkeypatch.setattr("attnlab.lab.reporting.pages.report", lambda folder: folder / "report.html")
    assert main(["report", folder]) == 0
    assert capsys.readouterr().out == "report: runs/small/report.html\n"
    monkeypatch.chdir("runs/small/linear")
    assert main(["report", "."]) == 0
    assert capsys.readouterr().out.endswith("runs/small/report.html\n")


class Calls(list):
    """What was asked."""

    steps: list


@pytest.fixture
def sampled(monkeypatch):
    """`sample` with nothing loaded: what it was asked, and of which steps' checkpoints."""
    calls = Calls()
    steps = calls.steps = []

    def sample(run, text, asked, step):
        calls.append(asked)
        steps.append(step)
        symbols = {"source": list(text), "target": ["2", "1"]}
        map = [[0, 1], [1, 0]]
        told = {"answer": "21", "answers": [], "decoder": None, "cut": False, "notes": ["so it was read"]}
        return {**told, **symbols, "map": map, "layers": [[map]]}

    monkeypatch.setattr("attnlab.lab.trained.sample.sample", sample)
    return calls


def test_sample(runs, capsys, sampled):
    assert main(["sample", "runs/small/softmax", "--input", "12"]) == 0
    assert capsys.readouterr() == ("21\n\n  12\n2  █\n1 █\n", "attnlab: so it was read\n")
    assert sampled[0].said == []
    for step in ("12", "best"):
        assert main(["sample", "runs/small/softmax", "--input", "12", "--step", step]) == 0
    assert sampled.steps == [None, 12, "best"]


def test_sample_with_decoding_options_and_a_page(runs, capsys, sampled):
    options = ["--beam", "4", "--penalty", "0.6", "--best", "2", "--html", "page.html"]
    assert main(["sample", "runs/small/softmax", "--input", "12", *options]) == 0
    assert sampled[0].said == ["--beam 4", "--penalty 0.6", "--best 2"]
    assert capsys.readouterr().out.endswith("\nalignment: page.html\n")
    assert "small/softmax" in Path("page.html").read_text()
    draws = ["--temperature", "0.5", "--top-k", "3", "--top-p", "0.9", "--seed", "7"]
    assert main(["sample", "runs/small/softmax", "--input", "12", *draws]) == 0
    assert sampled[1].said == ["--temperature 0.5", "--top-k 3", "--top-p 0.9", "--seed 7"]
    assert main(["sample", "runs/small/softmax", "--input", "12", "--length", "9"]) == 0
    assert sampled[2].length == 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beam", "2", "--top-k", "3"], "--beam 2 (beam search) and --top-k 3 (sampling) cannot be combined"),
        (["--beam", "0"], "--beam 0: size=0 must be at least 1"),
        (["--seed", "1", "--beam", "2"], "--seed 1 applies only to sampling and cannot be combined with --beam 2"),
        (["--step", "first"], "argument --step: 'first' must be the number of a step, best or last"),
        (["--html", "page.pdf"], "--html page.pdf must end in .html"),
        (["--html", "no/page.html"], "--html no/page.html: the folder no does not exist"),
    ],
)
def test_what_cannot_be_sampled_gives_one_line(runs, here, capfd, sampled, options, words):
    before = tree(here)
    assert main(["sample", "runs/small/softmax", "--input", "12", *options]) == 2
    shown = capfd.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(f"attnlab: error: {words}")
    assert (sampled, tree(here)) == ([], before)


def test_a_page_that_cannot_be_written(runs, capfd, sampled):
    assert main(["sample", "runs/small/softmax", "--input", "12", "--html", "/proc/page.html"]) == 4
    shown = capfd.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("attnlab: error: /proc/page.html: ")


@pytest.fixture
def inspected(monkeypatch):
    """`inspect` with nothing loaded: what it was asked."""
    calls = []
    monkeypatch.setattr("attnlab.lab.trained.inspect.inspect", lambda *asked: calls.append(asked) or FOUND)
    return calls


def test_inspect(runs, capsys, inspected):
    assert main(["inspect", "runs/small/softmax", "--input", "12"]) == 0
    assert inspected == [(Path("runs/small/softmax"), "12", None, None)]
    shown = capsys.readouterr().out
    assert shown.startswith("b\n\nencoder: linear, 2 × 3")
    assert shown.count("\nstep") == shown.count("page:") == shown.count("record:") == 0


def test_inspect_with_another_run_a_page_and_a_record(runs, capsys, inspected):
    options = ["--step", "best", "--other", "runs/small/linear", "--html", "a.html", "--json", "a.json"]
    assert main(["inspect", "runs/small/softmax", "--input", "12", *options]) == 0
    assert inspected == [(Path("runs/small/softmax"), "12", Path("runs/small/linear"), "best")]
    assert capsys.readouterr().out.endswith("\npage: a.html\nrecord: a.json\n")
    assert "small/softmax" in Path("a.html").read_text()
    record = json.loads(Path("a.json").read_text())
    assert record["attentions"]["encoder"]["figures"][0][1]["rank"] is None


@pytest.mark.parametrize(
    ("options", "leaves", "words"),
    [
        (["--other", "runs/x"], 4, "runs/x is not a run folder"),
        (["--html", "page.pdf"], 2, "--html page.pdf must end in .html"),
        (["--json", "no/a.json"], 2, "--json no/a.json: the folder no does not exist"),
        (["--beam", "2"], 2, "attnlab inspect does not accept '--beam'"),
    ],
)
def test_what_cannot_be_inspected_gives_one_line(runs, here, capfd, inspected, options, leaves, words):
    before = tree(here)
    assert main(["inspect", "runs/small/softmax", "--input", "12", *options]) == leaves
    shown = capfd.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(f"attnlab: error: {words}")
    assert (inspected, tree(here)) == ([], before)


def test_translate(runs, capsys, fake, monkeypatch):
    calls = []

    def stream(translator, source, sink, tell):
        sink.write(source.read().upper())
        tell("2 lines")
        return 3

    fake("attnlab.lab.trained.translate", Translator=lambda *given: calls.append(given), stream=stream)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("ä\nb\n".encode())))
    options = ["--top-k", "2", "--batch", "8", "--longer", "truncate", "--unknown", "skip", "--step", "7"]
    assert main(["translate", "runs/small/linear", *options]) == 3
    shown = capsys.readouterr()
    assert shown.err == "attnlab: 2 lines\n"
    ((run, asked, *rest),) = calls
    assert (run, asked.said, rest) == (Path("runs/small/linear"), ["--top-k 2"], [8, "truncate", "skip", 7])


def test_translate_without_standard_input(runs, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["translate", "runs/small/linear"]) == 2
    assert capsys.readouterr().err.startswith("attnlab: error: standard input is closed")


def test_sample_of_a_study_names_its_runs(runs, capsys):
    assert main(["sample", "runs/small", "--input", "12"]) == 4
    assert capsys.readouterr().err == (
        "attnlab: error: runs/small is not a run folder; it contains the runs runs/small/linear, runs/small/softmax\n"
    )


def test_sample_takes_an_input_that_looks_like_an_option(runs, sampled, capsys):
    assert main(["sample", "runs/small/linear", "--input=-2"]) == 0
    assert capsys.readouterr().out == "21\n\n  -2\n2  █\n1 █\n"
    # The map does not fit it, which shows that it was taken.
    assert main(["sample", "runs/small/linear", "--input=--help"]) == 2
    assert "6 columns" in capsys.readouterr().err


def test_data(fake, capsys):
    rows = [("cmudict", "a.txt", "verified", "/d/a.txt"), ("cmudict", "b.txt", "fetched", "/c/b.txt")]
    fake("attnlab.data.io.sources", data=lambda names: iter(rows))
    assert main(["data"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["set", "file", "where"],
        *[list(row) for row in rows],
    ]


def test_unavailable_data(fake, capsys):
    rows = [
        ("x", "a", "x/a is missing: looked\nhere", None),
        ("x", "b", "altered", None),
        ("x", "c", "verified", "/c"),
    ]
    fake("attnlab.data.io.sources", data=lambda names: rows)
    assert main(["data", "x"]) == 3
    shown = capsys.readouterr()
    assert shown.err == "attnlab: error: x/a is missing: looked here (and 1 more)\n"
    assert shown.out.count("unavailable") == 2


# Exit codes.


class Coded(Exception):
    """An error that brings its own code."""

    exit_code = 3


def raising(error):
    def act(options):
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "leaves", "line"),
    [
        (Coded("line one\nline two"), 3, "attnlab: error: line one line two"),
        (
            OSError(28, "No space left on device", "runs/x"),
            4,
            "attnlab: error: runs/x: No space left on device",
        ),
        (
            RuntimeError("boom\nmore"),
            1,
            "attnlab: error: unexpected RuntimeError: boom more; --debug shows the traceback",
        ),
        (ValueError("jax said"), 1, "attnlab: error: unexpected ValueError: jax said; --debug shows the traceback"),
        (KeyError("x"), 1, "attnlab: error: unexpected KeyError: 'x'; --debug shows the traceback"),
        (Coded(), 3, "attnlab: error: Coded"),
        (KeyboardInterrupt(), 130, "attnlab: interrupted"),
    ],
)
def test_exit_codes(monkeypatch, capsys, error, leaves, line):
    monkeypatch.setitem(VERBS, "list", SimpleNamespace(run=lambda *_: raising(error)(None)))
    assert main(["list"]) == leaves
    assert capsys.readouterr().err == line + "\n"


def test_an_error_that_a_worker_printed_is_not_repeated(monkeypatch, capsys):
    error = Coded("the reason")
    error.variant = "b"
    monkeypatch.setitem(VERBS, "list", SimpleNamespace(run=lambda *_: raising(error)(None)))
    assert main(["list"]) == 3
    assert capsys.readouterr().err == "attnlab: error: variant b failed; see above\n"


@pytest.mark.parametrize("switch", [["--debug"], []])
def test_debug_shows_the_traceback(monkeypatch, capsys, switch):
    if not switch:
        monkeypatch.setenv("ATTNLAB_DEBUG", "1")
    assert main(["rnu", *switch]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.splitlines()[-1].startswith("attnlab: error: unknown command 'rnu'")
