"""Checks the effect of a first and a second signal. Tests that would end this process use another one."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from attnlab.system.signals import (
    FINISHING,
    NUMBERS,
    TYPED,
    WAITING,
    Interrupted,
    _Arrived,
    collect_signals,
    raise_on_signal,
    set_location,
)

# Computes digests without Python's global lock and without handling signals, as a compilation does.
BUSY = """
import hashlib, signal, sys
from attnlab.system.signals import collect_signals, raise_on_signal
tell = lambda line: print(line, flush=True)
if "ignored" in sys.argv:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
with raise_on_signal("before the first step", tell) if "raised" in sys.argv else collect_signals(tell):
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@contextmanager
def busy(*how):
    """Starts a process that is inside a library when a signal arrives."""
    command = [sys.executable, "-c", BUSY, *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "busy\n"
            time.sleep(0.2)  # gives it time to enter the library
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def heard(monkeypatch):
    """Enable SIGINT, which is ignored if the tests run in the background."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number in before:
        if before[number] == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_signals_are_collected_and_handlers_restored():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with collect_signals() as caught:
        os.kill(os.getpid(), signal.SIGTERM)
        assert caught == [signal.SIGTERM]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize("how", ["collected", "raised"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_is_reported_and_the_second_ends_the_process_even_in_a_library(number, code, how):
    with busy(how) as process:
        process.send_signal(number)
        assert process.stdout.readline() == {"collected": FINISHING, "raised": WAITING}[how] + "\n"
        process.send_signal(number)
        assert process.wait(60) == code
        name = signal.Signals(number).name
        assert process.stderr.read() == f"attnlab: stopped at once by {name}; work since the last save is lost\n"


def test_repeated_signals_of_a_terminal_or_scheduler_do_not_end_the_process():
    """Only a signal that a person types, or sends to end the process, counts as a second one."""
    with busy("collected") as process:
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGXCPU, signal.SIGXCPU, signal.SIGUSR1, signal.SIGTERM):
            process.send_signal(number)
        assert process.stdout.readline() == FINISHING + "\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_what_is_ignored_at_the_start_stays_ignored_as_under_nohup():
    with busy("collected", "ignored") as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with collect_signals() as caught, raise_on_signal("never"):
            os.kill(os.getpid(), signal.SIGHUP)
        assert caught == []
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_each_signal_that_asks_to_stop_is_collected_and_raised_with_a_shells_exit_code(number):
    with collect_signals() as caught:
        os.kill(os.getpid(), number)
        if number not in TYPED:
            os.kill(os.getpid(), number)
    assert set(caught) == {number}

    def work():
        with raise_on_signal("with all saved"):
            os.kill(os.getpid(), number)
            time.sleep(20)

    with pytest.raises(Interrupted) as stopped:
        work()
    assert stopped.value.exit_code == 128 + number


def test_located_replaces_the_message_of_the_handler():
    def work():
        with raise_on_signal("elsewhere"), set_location(lambda: "before the first step"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(20)

    with pytest.raises(Interrupted, match=r"^stopped by SIGTERM before the first step$"):
        work()


def test_collected_within_raised_reports_at_once_and_restores_the_outer_handler():
    said = []

    def work():
        with raise_on_signal("after it", said.append):
            with collect_signals(said.append) as caught:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.3)
            said.append(list(caught))
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(20)

    with pytest.raises(Interrupted):
        work()
    assert said == [FINISHING, [signal.SIGTERM]]


def test_outside_of_training_a_signal_raises_interrupted():
    def work():
        with raise_on_signal("with all saved"), suppress(Exception):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match=r"^stopped by SIGINT with all saved$") as stopped:
        work()
    assert stopped.value.exit_code == 130


@pytest.mark.parametrize("seconds", [0, 20])
def test_a_signal_in_a_finalizer_is_raised_afterwards(seconds):
    class Dying:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)

    def work():
        with raise_on_signal("with all saved"):
            Dying()
            reached.append("after the finalizer")
            time.sleep(seconds)
            if seconds:
                reached.append("after the sleep")

    reached = []
    with pytest.raises(Interrupted, match="SIGTERM"):
        work()
    assert reached == ["after the finalizer"]
    time.sleep(0.1)  # no second exception follows


def test_signals_are_not_handled_in_another_thread():
    found = []

    def work():
        with collect_signals() as caught, raise_on_signal("never"):
            found.append(caught)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[]]


def test_no_descriptor_is_left_open():
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(20):
        with collect_signals():
            pass
    assert before is None or len(os.listdir("/proc/self/fd")) == before
    assert threading.active_count() < 20


@pytest.mark.parametrize("late", [False, True])
def test_a_resent_signal_is_no_second_one_even_if_the_first_is_seen_later(late):
    seen = _Arrived()
    found = [] if late else [seen.again(signal.SIGINT)]
    seen.resent += 1
    while len(found) < 4:
        found.append(seen.again(signal.SIGINT))
    assert found == [False, False, True, True]
