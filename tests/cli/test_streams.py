import os
import subprocess
import sys

import pytest

from tests.cli.experiment import FILE, ROOT, run_process


@pytest.mark.parametrize(
    ("command", "leaves"),
    [(["--version"], 0), (["rnu"], 2), (["run", FILE, "model.heads=3"], 2), (["sample", "x", "--input", "y"], 4)],
)
def test_exit_codes_and_errors_of_a_process(here, command, leaves):
    done = run_process(command, here)
    assert done.returncode == leaves
    assert done.stderr.count("\n") == (1 if leaves else 0)
    assert "Traceback" not in done.stderr


def test_a_terminal_with_a_small_encoding(here):
    done = run_process(["list", "mechanisms"], here, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Linear attention, ?(x) = " in done.stdout


def test_an_ascii_locale_prints_utf8(here):
    done = run_process(["list", "mechanisms"], here, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Linear attention, φ(x) = " in done.stdout


def test_a_closed_pipe_exits_with_141(here):
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
    """Runs `attnlab` with redirections of a shell. Standard streams that are not redirected are captured."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""} | settings
    command = f"{sys.executable} -m attnlab {words}"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=here, env=environment)


@pytest.mark.parametrize("words", ["list", "run study.py", "sample runs/base --input x"])
def test_a_removed_working_directory_is_named(here, words):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    script = f'mkdir gone; cd gone; rmdir ../gone; exec "{sys.executable}" -m attnlab {words}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, cwd=here, env=environment)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "attnlab: error: the working directory no longer exists; change to another one\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--version", "list", "show --help"])
@pytest.mark.parametrize(("where", "why"), [(">&-", "the stream is closed"), (">/dev/full", "No space left on device")])
def test_an_unwritable_standard_output_is_reported_in_one_line(here, words, where, why, unbuffered):
    if not os.path.exists("/dev/full"):
        pytest.skip("no full device here")
    done = shell(f"{words} {where}", here, PYTHONUNBUFFERED=unbuffered)
    line = f"cannot write to standard output: {why}"
    if words == "list" and where == ">&-":
        line = "standard output is closed, but attnlab list writes its results to it"
    assert done.stderr == f"attnlab: error: {line}\n"
    assert done.returncode == 4


def test_printing_commands_need_a_standard_output(here):
    done = shell("sample x --input y >&-", here)
    line = "attnlab: error: standard output is closed, but attnlab sample writes its results to it\n"
    assert (done.returncode, done.stderr) == (4, line)


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_an_unwritable_standard_error_changes_nothing_else(here, where):
    done = shell(f"list scores {where}", here)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "scores", "")
    # Text for standard error does not appear among the results.
    done = shell(f"rnu {where}", here)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_opened_files_do_not_take_the_place_of_closed_streams(tmp_path):
    code = (
        "import os; from attnlab.system import streams; streams.prepare(); file = open('a', 'w'); print(file.fileno());"
        "os.write(2, b'of a library'); os.write(0, b'x')"
    )
    command = f'{sys.executable} -c "{code}" 2>&- <&-'
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert int(done.stdout) > 2
    assert (tmp_path / "a").read_text() == ""
