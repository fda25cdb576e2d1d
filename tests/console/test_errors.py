"""Checks that an error is reported in one line, with an exit code."""

import pytest

from attnlab.console.errors import explain
from attnlab.training.config import Train


class Coded(Exception):
    """A refusal with its own exit code."""

    exit_code = 3


def test_a_signal_s_code_is_no_error():
    error = Coded("stopped by SIGTERM at step 3, saved")
    error.exit_code, error.is_stop = 143, True
    assert explain(error) == ("attnlab: stopped by SIGTERM at step 3, saved", 143)
    error.exit_code, error.is_stop = 137, False
    assert explain(error)[0].startswith("attnlab: error: ")


def test_a_value_error_of_attnlab_is_a_usage_error():
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        Train(steps=0)
    assert explain(refusal.value)[1] == 2
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        int("x")
    assert explain(refusal.value)[1] == 1


def test_missing_resources_are_no_internal_errors():
    assert explain(MemoryError()) == (
        "attnlab: error: out of memory (MemoryError); reduce the batch size, or use shorter or fewer examples", 2
    )  # fmt: skip
    assert explain(FileNotFoundError(2, "No such file", "runs/x"))[0] == "attnlab: error: runs/x: No such file"
    assert explain(ConnectionResetError("gone"))[1] == 1


def test_messages_are_one_line_without_control_characters():
    line, code = explain(Coded("a\x1b[2J\nb" + "c" * 10_000 + " must be"))
    assert (code, line[:20], line[-8:]) == (3, "attnlab: error: a␛[2", " must be")
    assert len(line) < 5000
