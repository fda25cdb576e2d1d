"""What a first and a second signal do; a process of its own where it would end ours."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from attnlab.training.signals import Interrupted, collected, raised

# Digests are computed without Python's own lock, and without looking at signals: as a compilation is.
BUSY = """
import hashlib
from attnlab.training.signals import collected
with collected() as caught:
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


def test_signals_are_collected_and_handlers_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with collected() as caught:
        os.kill(os.getpid(), signal.SIGTERM)
        assert caught == [signal.SIGTERM]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_one_ends_the_process_even_within_a_library(number, code):
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "busy\n"
        process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(number)
        assert process.wait(60) == code
        name = signal.Signals(number).name
        assert process.stderr.read() == f"attnlab: left at once by {name}; what came after the last save is lost\n"


def test_elsewhere_than_in_training_it_is_raised_and_swallowed_by_nobody():
    def work():
        with raised("with all saved"), suppress(Exception):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match=r"^stopped by SIGINT with all saved$") as stopped:
        work()
    assert stopped.value.exit_code == 130


@pytest.mark.parametrize("seconds", [0, 20])
def test_one_that_comes_within_a_finaliser_is_raised_when_that_is_over(seconds):
    class Dying:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)

    def work():
        with raised("with all saved"):
            Dying()
            went_on.append(True)
            time.sleep(seconds)

    went_on, began = [], time.monotonic()
    with pytest.raises(Interrupted, match="SIGTERM"):
        work()
    assert went_on
    assert time.monotonic() - began < 10
    time.sleep(0.1)  # nothing comes behind it


def test_in_another_thread_signals_are_not_ours():
    found = []

    def work():
        with collected() as caught, raised("never"):
            found.append(caught)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[]]


def test_nothing_is_left_open():
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(20):
        with collected():
            pass
    assert before is None or len(os.listdir("/proc/self/fd")) == before
    assert threading.active_count() < 20
