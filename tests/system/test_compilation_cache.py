"""Checks compiled programs on disk: their folder, number and owner, and what happens when one is damaged."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from attnlab.system.compilation_cache import enable, kind, others_may_write, trim

# Compiles one program in a process that has no cache of jax's own, and prints whether it was found on disk.
PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from jax import monitoring
from attnlab.system import compilation_cache
compilation_cache.SHORTEST = 0
found = []
monitoring.register_event_listener(lambda name, **more: found.append(name.endswith("cache_hits")))
print(compilation_cache.enable())
print(float(jax.jit(lambda x: jnp.tanh(x) @ x)(np.ones((3, 3), np.float32))[0, 0]), any(found))
"""


# Compiles the same program again with the cache off, and then on. It is found only when the cache is on.
OFF_AND_ON = (
    PROGRAM
    + """
for switch in (compilation_cache.disable, compilation_cache.enable):
    switch()
    jax.clear_caches()
    found.clear()
    jax.jit(lambda x: jnp.tanh(x) @ x)(np.ones((3, 3), np.float32))
    print(any(found))
"""
)


def program(home, code=PROGRAM, **variables):
    """Returns the lines that a program prints."""
    mine = {name: text for name, text in os.environ.items() if "COMPILATION_CACHE" not in name}
    environment = mine | {"XDG_CACHE_HOME": str(home), "PYTHONWARNINGS": "default"} | variables
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split("\n")[:-1]


# Describes a study, and prints the folder of the cache.
SHOW = """
from attnlab.lab.planning.summary import show
from attnlab.lab.study.study import Study
from attnlab.system import compilation_cache
from tests.small import EXPERIMENT
show(Study(EXPERIMENT))
print(compilation_cache.folder())
"""


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        ({}, True),
        ({"JAX_ENABLE_COMPILATION_CACHE": "false"}, False),
        ({"JAX_COMPILATION_CACHE_DIR": "gs://bucket/programs"}, False),
    ],
)
def test_flops_are_kept_beside_compiled_programs(tmp_path, variables, kept):
    (folder,) = program(tmp_path, SHOW, PYTHONPATH=os.pathsep.join(sys.path), **variables)
    found = list(tmp_path.rglob("flops-*.json"))
    assert [str(path.parent) for path in found] == ([folder] if kept else [])
    assert folder == (str(tmp_path / "attnlab" / "compiled" / kind()) if kept else "None")


def test_flops_are_kept_in_the_folder_that_jax_is_given(tmp_path):
    given = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "given"), "PYTHONPATH": os.pathsep.join(sys.path)}
    assert program(tmp_path, SHOW, **given) == [str(tmp_path / "given")]
    assert [path.parent.name for path in tmp_path.rglob("flops-*.json")] == ["given"]


def test_a_program_is_compiled_once_and_a_damaged_one_again(tmp_path):
    first = program(tmp_path)
    assert first[0] == "None"
    assert first[1].endswith("False")
    again = program(tmp_path)
    assert again[0] == "None"
    assert again[1] == first[1].replace("False", "True")
    (folder,) = (tmp_path / "attnlab" / "compiled").iterdir()
    assert folder.name.startswith("jaxlib-")
    assert folder.stat().st_mode & 0o077 == 0
    entries = list(folder.glob("*-cache"))
    assert entries
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:20])
    assert program(tmp_path)[1].split()[0] == first[1].split()[0]


def test_it_is_turned_off_and_on_again(tmp_path):
    assert program(tmp_path, OFF_AND_ON)[2:] == ["False", "True"]
    settings = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "other"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    assert program(tmp_path, OFF_AND_ON, **settings)[2:] == ["True", "True"]


def test_two_processes_fill_it_at_once(tmp_path):
    with ThreadPoolExecutor() as pool:
        lines = list(pool.map(program, [tmp_path, tmp_path]))
    assert len({value.split()[0] for _, value in lines}) == 1
    assert [said for said, _ in lines] == ["None", "None"]
    assert program(tmp_path)[1].endswith("True")


def test_jax_settings_forbid_it_or_name_a_folder(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    assert program(home, JAX_ENABLE_COMPILATION_CACHE="false")[1].endswith("False")
    program(home, JAX_COMPILATION_CACHE_DIR=str(other), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
    assert not home.exists()
    assert list(other.iterdir())


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "attnlab").write_text("a file")
    first, second = program(tmp_path)
    assert first.startswith(f"compiled programs are not kept: {tmp_path}/attnlab")
    assert second.endswith("False")


def test_a_named_folder_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("a file")
    names = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "file"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    first, second = program(tmp_path, **names)
    assert first == f"compiled programs are not kept: {tmp_path}/file: File exists"
    assert second.endswith("False")


# Makes the disk full for programs, which are larger than a block of 512 bytes.
FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
"""


def test_a_program_that_cannot_be_written_is_not_reported(tmp_path):
    names = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "own"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    for variables in ({}, names):
        assert program(tmp_path, FULL + PROGRAM, **variables)[0] == "None"
    assert all(path.stat().st_size <= 512 for path in tmp_path.rglob("*-cache"))


# The same in a worker process, with the settings that it receives.
PREPARED = """
from pathlib import Path
from attnlab.lab.execution import variant
from attnlab.lab.execution.log_lines import Plain
from attnlab.lab.execution.worker import work
from attnlab.lab.execution.worker_input import worker_input
from attnlab.lab.planning.plan import plans
from attnlab.lab.study.study import Study
from tests.small import EXPERIMENT

variant.run_in_order = lambda *given: None
study = Study(EXPERIMENT)
out = Path("out")
given = worker_input(plans(study, {"base": EXPERIMENT}, out, {}, quick=False, checked=True), 2, out, "", "")
given["jax"]["jax_compilation_cache_dir"] = str(Path("programs").absolute())
given["jax"]["jax_persistent_cache_min_compile_time_secs"] = 0
"""
WORK = FULL + PREPARED + PROGRAM.replace("compilation_cache.enable()", "work(given, Plain())")


def test_a_worker_reports_no_program_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert program(tmp_path, WORK, PYTHONPATH=os.pathsep.join(sys.path))[0] == "None"
    assert (tmp_path / "programs").is_dir()


def test_a_folder_that_others_can_write_is_not_used(tmp_path):
    program(tmp_path)
    (folder,) = (tmp_path / "attnlab" / "compiled").iterdir()
    folder.chmod(0o770)
    assert others_may_write(folder)
    first, second = program(tmp_path)
    assert first == f"compiled programs are not kept: other users can write in {folder}; run chmod go-w {folder}"
    assert second.endswith("False")


def test_another_version_or_processor_has_another_folder(monkeypatch):
    names = {kind()}
    monkeypatch.setattr("attnlab.system.compilation_cache.version", lambda package: "0.0.1")
    names.add(kind())
    monkeypatch.setattr("pathlib.Path.read_text", lambda path, **more: "flags : fpu avx")
    names.add(kind())
    assert len(names) == 3


def test_the_oldest_programs_are_deleted_beyond_the_limit(tmp_path):
    for n in range(5):
        path = tmp_path / f"version-{n % 2}" / f"{n}-cache"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10)
        os.utime(path, (n, n))
    os.utime(tmp_path / "version-0" / "0-cache", (9, 0))  # read most recently
    (tmp_path / "other").write_bytes(b"x" * 100)
    trim(tmp_path, 30)
    assert sorted(path.name for path in tmp_path.rglob("*-cache")) == ["0-cache", "3-cache", "4-cache"]
    assert (tmp_path / "other").exists()


def test_an_unknown_home_has_no_cache(monkeypatch):
    monkeypatch.setattr("attnlab.system.compilation_cache.cache_folder", lambda: None)
    monkeypatch.setattr("jax.config.update", pytest.fail)
    assert enable() is None
