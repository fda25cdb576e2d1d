"""Checks that settings of jax are recorded and compared if they change numbers, and refused if they cannot work."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import jax
import pytest
from rich.console import Console

from attnlab.lab import load, run
from attnlab.lab.results.table import results_table
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.variation import over
from attnlab.lab.trained.load import trained
from attnlab.system.environment import environment
from attnlab.system.settings import check, mixed, numbers
from attnlab.training.checkpoints import CheckpointError, Checkpoints, DamagedError
from tests.lab.execution.test_variant import STUDY, Stopping

ROOT = Path(__file__).parents[2]


def called(*arguments, cwd, **variables):
    """Runs the command line in another process with environment variables. Returns its exit code and stderr."""
    there = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, "-m", "attnlab", *arguments],
        cwd=cwd, env=there | {"PYTHONPATH": str(ROOT)} | variables, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Returns the folder of a study whose run was stopped at step 8."""
    out = tmp_path_factory.mktemp("stopped")
    with pytest.raises(RuntimeError, match="stopped here"):
        run(STUDY, out, progress=Stopping(8))
    return out


@contextmanager
def setting(name, value):
    """Gives a setting of jax another value for a while."""
    was = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, was.name.lower() if hasattr(was, "name") else was)


def bytes_of(out):
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != "lock"}


OTHERS = [
    ("jax_default_prng_impl", "rbg", "JAX_DEFAULT_PRNG_IMPL=threefry2x32, now rbg"),
    ("jax_threefry_partitionable", False, "JAX_THREEFRY_PARTITIONABLE=1, now 0"),
    ("jax_random_seed_offset", 5, "JAX_RANDOM_SEED_OFFSET=0, now 5"),
    ("jax_high_dynamic_range_gumbel", True, "JAX_HIGH_DYNAMIC_RANGE_GUMBEL=0, now 1"),
    ("jax_explicit_x64_dtypes", "allow", "JAX_EXPLICIT_X64_DTYPES=warn, now allow"),
    ("jax_enable_x64", True, "JAX_ENABLE_X64=0, now 1"),
]


@pytest.mark.parametrize(("name", "value", "words"), OTHERS)
def test_a_run_continues_only_under_the_settings_it_began_with(stopped, name, value, words):
    before = bytes_of(stopped)
    with setting(name, value), pytest.raises(ValueError, match=f"moved/base was made with {words}; set ") as refused:
        run(STUDY, stopped)
    assert "fresh" not in str(refused.value)
    assert bytes_of(stopped) == before


@pytest.mark.parametrize(("name", "value", "words"), [OTHERS[0], OTHERS[-1]])
def test_a_run_is_loaded_only_with_arrays_as_it_was_made_with(stopped, name, value, words):
    folder, before = stopped / STUDY.name / "base", bytes_of(stopped)
    with setting(name, value), pytest.raises(ValueError, match=f"moved/base was made with {words}; set ") as refused:
        trained(folder, data=False)
    assert "fresh" not in str(refused.value)
    assert bytes_of(stopped) == before
    assert trained(folder, data=False).step == 8


def test_the_settings_that_change_draws_and_precision_are_recorded():
    assert environment()["jax_enable_x64"] is False
    assert environment()["jax_default_prng_impl"] == "threefry2x32"
    assert environment()["jax_threefry_partitionable"] is True
    assert environment()["jax_random_seed_offset"] == 0
    assert environment()["jax_explicit_x64_dtypes"] == "warn"


def test_flags_of_xla_are_recorded_without_those_that_name_places(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_b=2  --xla_dump_to=/home/somebody/x --xla_a=true")
    assert numbers()["xla_flags"] == "--xla_a=true --xla_b=2"


def test_a_page_and_a_table_of_runs_under_different_settings_say_so(tmp_path):
    both = replace(STUDY, vary=over("train.seeds", few=1, many=2))
    page = run(both, tmp_path).report
    assert "different settings" not in page.read_text()
    # This imitates that "many" was trained in another process.
    folder = RunFolder(tmp_path / "moved" / "many")
    folder.write("environment", (folder.read("environment") or {}) | {"jax_enable_x64": True})
    from attnlab.lab.reporting import report

    told = report(tmp_path / "moved").read_text()
    assert "The runs used different settings" in told
    assert "jax_enable_x64 is 0 in few, 1 in many" in told
    console = Console(record=True, width=200)
    console.print(results_table(tmp_path / "moved"))
    assert "the runs used different settings: jax_enable_x64 is 0 in few, 1 in many" in console.export_text()


def test_settings_missing_in_older_records_are_not_compared():
    assert mixed({"a": {}, "b": {"jax_enable_x64": True}}) == []
    last = {"xla_flags": "", "later": [{"step": 3, "xla_flags": "--xla_a"}]}
    assert mixed({"a": last, "b": {"xla_flags": ""}, "c": {"xla_flags": ""}, "d": {"xla_flags": ""}}) == [
        "xla_flags is --xla_a in a, empty in b and 2 others"
    ]


@pytest.mark.parametrize(
    ("name", "value", "training"),
    [
        ("jax_disable_jit", True, True), ("jax_debug_key_reuse", True, True),
        ("jax_numpy_dtype_promotion", "strict", True), ("jax_debug_infs", True, False),
        ("jax_no_tracing", True, False), ("jax_no_execution", True, False),
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused_before_anything(tmp_path, name, value, training):
    # The tests set two of these settings with a context manager, which takes precedence over the configuration.
    held = {"jax_debug_key_reuse": jax.debug_key_reuse, "jax_numpy_dtype_promotion": jax.numpy_dtype_promotion}
    context = held[name](value) if name in held else nullcontext()
    with setting(name, value):
        with (
            context,
            pytest.raises(ValueError, match=rf"^attnlab cannot (train|compute) with {name.upper()}=\w+; unset "),
        ):
            run(STUDY, tmp_path)
        if training:
            check()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"JAX_PLATFORMS": "cuda"}, "JAX_PLATFORMS=cuda: jax finds no such device ("),
        ({"JAX_PLATFORMS": "nonsense"}, "JAX_PLATFORMS=nonsense: jax finds no such device ("),
        ({"JAX_PLATFORM_NAME": "nonsense"}, "JAX_PLATFORM_NAME=nonsense: jax finds no such device ("),
        ({"JAX_PLATFORM_NAME": "nonsense", "JAX_PLATFORMS": "cpu"}, "JAX_PLATFORM_NAME=nonsense: jax finds no such "),
        (
            {"JAX_PLATFORM_NAME": "cpu", "JAX_PLATFORMS": "nonsense"},
            "JAX_PLATFORMS=nonsense: jax finds no such device (",
        ),
        ({"JAX_DEFAULT_DEVICE": "gpu"}, "JAX_DEFAULT_DEVICE=gpu: jax finds no such device ("),
        ({"JAX_ENABLE_X64": "banana"}, "jax rejects an environment variable: invalid truth value 'banana'"),
        ({"XLA_FLAGS": "--xla_nonsense=1"}, "XLA rejects XLA_FLAGS=--xla_nonsense=1 (Unknown flag in XLA_FLAGS"),
    ],
)
def test_variables_that_cannot_work_are_one_line(tmp_path, variables, words):
    if variables.get("JAX_PLATFORMS") == "cuda" and any(one.platform == "gpu" for one in jax.devices()):
        pytest.skip("there is such a device")
    code, told = called("parity", "linear", cwd=tmp_path, **variables)
    line = told.strip().split("\n")[-1]
    assert code == 2
    assert line.startswith(f"attnlab: error: {words}")
    assert "Traceback" not in told


def test_a_variable_that_jax_rejects_is_named_as_one_when_a_study_is_loaded(tmp_path):
    """Loading a study wraps the errors of its file, and jax raises its own while it is imported there."""
    code, told = called("show", str(ROOT / "experiments" / "dates.py"), cwd=tmp_path, JAX_ENABLE_X64="banana")
    assert (code, told.strip().split("\n")[-1]) == (
        2,
        "attnlab: error: jax rejects an environment variable: invalid truth value 'banana' for environment "
        "'JAX_ENABLE_X64'",
    )


@pytest.mark.parametrize("command", [("run", "study.py"), ("sample", "runs/moved/base", "--input", "1 2")])
def test_a_missing_device_is_named_and_the_run_stays(tmp_path, stopped, command):
    shutil.copytree(stopped, tmp_path / "runs")
    (tmp_path / "study.py").write_text("from tests.lab.execution.test_variant import STUDY as study\n")
    before = bytes_of(tmp_path)
    code, told = called(*command, cwd=tmp_path, JAX_PLATFORMS="nonsense")
    assert code == 2
    assert told.startswith("attnlab: error: JAX_PLATFORMS=nonsense: jax finds no such device (")
    assert told.count("\n") == 1
    assert "fresh" not in told
    assert bytes_of(tmp_path) == before


def damage(folder):
    file = next(path for path in (folder / "8" / "state").rglob("*") if path.is_file() and path.stat().st_size > 4)
    file.write_bytes(file.read_bytes()[:-2])


def lost(folder):
    (folder / "8" / "manifest.json").unlink()


# Causes for which a run cannot continue: name, change of its files, error, whether its checkpoint is damaged, message.
CAUSES = [
    ("altered", damage, None, True, "was altered"),
    ("manifest gone", lost, None, True, "cannot be read: No such file"),
    ("memory", None, MemoryError(), False, "is intact but cannot be loaded here: MemoryError"),
    ("device", None, AssertionError(), False, "is intact but cannot be loaded here: AssertionError"),
    ("input and output", None, OSError(5, "Input/output error"), False, "Input/output error"),
    ("permission", None, PermissionError(13, "Permission denied"), False, "Permission denied"),
]


@pytest.mark.parametrize(("cause", "harm", "error", "damaged", "words"), CAUSES, ids=[case[0] for case in CAUSES])
def test_only_damage_comes_with_the_advice_to_train_again(
    stopped, tmp_path, monkeypatch, cause, harm, error, damaged, words
):
    shutil.copytree(stopped / "moved", tmp_path / "moved")
    folder = tmp_path / "moved" / "base" / "checkpoints"
    before = bytes_of(folder)
    if harm is not None:
        harm(folder)
    elif isinstance(error, OSError):
        monkeypatch.setattr("attnlab.training.manifest.hashlib.file_digest", lambda *given: broken(error))
    else:
        import orbax.checkpoint as ocp

        monkeypatch.setattr(ocp.PyTreeCheckpointer, "restore", lambda *given, **named: broken(error))
    with pytest.raises(CheckpointError) as refused:
        run(STUDY, tmp_path)
    told = str(refused.value)
    assert words in told
    assert isinstance(refused.value, DamagedError) == damaged
    assert ("use --out DIR" in told) == damaged
    assert "fresh" not in told
    if not damaged:
        assert told.endswith("; the run is unchanged")
        assert bytes_of(folder) == before
        with pytest.raises(CheckpointError) as refused:
            load(folder.parent)
        assert "fresh" not in str(refused.value)


def test_an_intact_checkpoint_is_not_passed_over_for_an_older_one(tmp_path, monkeypatch):
    # Continuing from the older checkpoint would lose the newer one.
    state = {"w": jax.numpy.ones(3)}
    saved = Checkpoints(tmp_path)
    for step in (1, 2):
        saved.save(step, state, {})
    with monkeypatch.context() as patch:
        patch.setattr("attnlab.training.manifest.hashlib.file_digest", lambda *given: broken(OSError(5, "I/O error")))
        with pytest.raises(CheckpointError, match=r"2/.* cannot be read: I/O error; the run is unchanged"):
            saved.restore(state)
    assert saved.restore(state)[0] == 2


def broken(error):
    raise error


def test_a_damaged_environment_record_does_not_prevent_loading(tmp_path):
    folder = RunFolder(run(STUDY, tmp_path).folder / "base")
    folder.file("environment").write_text("{}")
    load(folder.path)
