"""Tests that `translate` answers each line with one line, which does not depend on the other lines."""

import io
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from attnlab.data.text.example import Example
from attnlab.data.text.units import Bytes
from attnlab.decoding import Beam
from attnlab.lab.trained.decoding import DecodingOptions
from attnlab.lab.trained.translate import Answered, Translator, arriving, stream, translate
from attnlab.storage.json_file import FolderError
from attnlab.tasks import Associations
from attnlab.tasks.base.metrics import EXACT_MATCH, exact_match
from attnlab.tasks.text.transduction import PairData
from tests.lab.parrot import PROBLEM, Trained, parrot
from tests.small import TASK


@pytest.fixture
def trained(monkeypatch):
    """Returns a function that replaces the loaded run by a given one."""

    def trained(run):
        monkeypatch.setattr("attnlab.lab.trained.translate.trained", lambda folder, step, data: run)

    trained(parrot())
    return trained


def through(content, **options):
    """Returns the output text, the messages and the exit code."""
    sink, told = io.BytesIO(), []
    code = stream(Translator("run", **options), io.BytesIO(content), sink, told.append)
    assert re.fullmatch(r"\d+ lines?, \d+ refused.*, \d+\.\d s", told[-1])
    return sink.getvalue().decode(), told[:-1], code


# A byte order mark, CRLF, an empty and a blank line, an unknown symbol, invalid UTF-8, a long line, no line end.
LINES = b"\xef\xbb\xbf1 2\r\n3\n\n \t \r\n4 x 4\n1 \xff\n0 1 2 3 4 0 1 2 3\n2 2"


@pytest.mark.parametrize("batch", [1, 3, 32])
def test_every_line_has_one_answer_or_a_message(trained, batch):
    out, told, code = through(LINES, batch=batch)
    assert out == "1 2\n3\n\n\n\n\n\n2 2\n"
    assert told == [
        'line 5: never seen in training: "x" (U+0078) at position 2; the answer is an empty line',
        f"line 6: not UTF-8: byte {LINES.index(0xFF)} of the input is 0xff; the answer is an empty line",
        "line 7: 9 tokens exceed the model's limit of 7; the answer is an empty line",
    ]
    assert code == 3


def test_lines_are_cut_and_symbols_left_out_as_asked(trained):
    out, told, code = through(b"4 x 4\n0 1 2 3 4 0 1 2 3\ny\nx 0 1 2 3 4 0 1\n", longer="truncate", unknown="skip")
    assert out == "4 4\n0 1 2 3 4 0 1\n\n0 1 2 3 4 0 1\n"
    assert told == [
        'line 1: never seen in training: "x" (U+0078) at position 2; these symbols are skipped',
        "line 2: 9 tokens exceed the model's limit of 7; truncated",
        'line 3: never seen in training: "y" (U+0079) at position 1; the answer is an empty line',
        'line 4: never seen in training: "x" (U+0078) at position 1; these symbols are skipped',
    ]
    assert code == 3


def test_summary_counts_all_lines(trained):
    told = []
    # An answer has at most eight tokens, including its end. A source without marks may have eight symbols.
    trained(parrot(replace(TASK, source_marks="none").load()))
    stream(Translator("run"), io.BytesIO(b"1\n0 1 2 3 4 0 1 2\n"), io.BytesIO(), told.append)
    assert told[0].startswith("2 lines, 0 refused, 1 with an answer cut off at 8 tokens, ")
    assert through(b"") == ("", [], 0)


def test_lines_are_answered_as_they_arrive(trained):
    sink, seen = io.BytesIO(), []
    held = io.BufferedWriter(sink)  # pyright: ignore[reportArgumentType]

    class Slow:
        chunks = iter([b"1 2\n3", b" 4\n0\n", b"2", b""])

        def read1(self, most):
            seen.append(sink.getvalue())
            return next(self.chunks)

    stream(Translator("run", batch=4), Slow(), held, lambda line: None)
    assert seen == [b"", b"1 2\n", b"1 2\n3 4\n0\n", b"1 2\n3 4\n0\n"]
    assert sink.getvalue() == b"1 2\n3 4\n0\n2\n"


def test_available_lines_of_a_pipe_are_answered_at_once():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        lines = arriving(pipe)
        os.write(writing, b"a\nb")
        assert next(lines) == [b"a\n"]
        os.write(writing, b"c\n\n")
        assert next(lines) == [b"bc\n", b"\n"]
        os.write(writing, b"d")
        os.close(writing)
        assert list(lines) == [[b"d"]]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_lines_are_complete_for_any_read_size(size):
    content = "ä\r\n\nb\x0cc\u2028d\re\n".encode()
    pieces = [content[n : n + size] for n in range(0, len(content), size)] + [b""]

    class Pieces:
        read1 = lambda self, most: pieces.pop(0)

    assert [line for group in arriving(Pieces()) for line in group] == ["ä\r\n".encode(), b"\n", content[5:]]


def test_unreadable_input_is_named():
    class Broken:
        def read1(self, most):
            raise IsADirectoryError(21, "Is a directory")

    with pytest.raises(FolderError, match=r"^standard input: Is a directory$"):
        list(arriving(Broken()))


def test_samples_do_not_depend_on_the_batch(trained):
    trained(parrot(scores=np.linspace(0, 8, PROBLEM.shape.target_vocabulary)))
    lines = ["1 2 3", "", "1 2 3", "4"] * 3
    first, again, other = (
        [answer.text for answer in translate("run", lines, DecodingOptions(temperature=3.0, seed=seed), batch=batch)]
        for batch, seed in ((5, 0), (12, 0), (12, 1))
    )
    assert first == again != other
    assert first[0] != first[2]


def test_python_input_is_text_or_bytes(trained):
    answers = translate("run", iter(["1 2", b"3\n", "\ud800"]), batch=2)
    assert next(answers) == Answered(1, "1 2")
    assert next(answers) == Answered(2, "3")
    last = next(answers)
    assert last.refused
    assert last.trouble == "not UTF-8: byte 5 of the input is 0xed"


def test_single_string_is_refused(trained):
    for text in ("1 2", b"1 2"):
        with pytest.raises(TypeError, match=r"lines must be an iterable of lines, got a single line; pass \[line\]"):
            translate("run", text)


def test_few_programs_are_compiled(trained):
    translator = Translator("run", batch=2)
    list(translator([[b"1\n"], [b"1 2 3\n", b"2\n", b"3 3 3 3 3 3\n"]]))
    assert translator._answerer._answers._cache_size() <= len(PROBLEM.buckets.widths) + 1


def test_the_decoder_of_the_run_is_used(trained):
    trained(parrot(decoder=Beam(size=2)))
    translator = Translator("run")
    assert translator._answerer.decoder == Beam(size=2)
    assert [answer.text for answer in next(translator([[b"1 2"]]))] == ["1 2"]


def test_nonfinite_scores_are_no_answer(trained):
    trained(parrot(scores=np.nan))
    assert through(b"1\n") == (
        "\n", ["line 1: the model returned non-finite values for this line; the answer is an empty line"], 3
    )  # fmt: skip


def test_line_breaks_in_answers_are_escaped(trained):
    parts = {part: [Example("a\rb", ("a\nb",))] for part in ("train", "valid", "test")}
    trained(parrot(PairData(parts, (Bytes(),), exact_match, (EXACT_MATCH,))))
    assert [answer.text for answer in translate("run", ["a\nb"])] == ["a b"]
    assert through("a\rb\né\n".encode())[0] == "a b\né\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch=0 must be at least 1"),
        ({"longer": "cut"}, "longer='cut' is not known.*known: refuse, truncate"),
        ({"unknown": "skipp"}, "unknown='skipp' is not known; nearest: 'skip'"),
    ],
)
def test_invalid_arguments_are_refused(trained, options, words):
    with pytest.raises(ValueError, match=words):
        Translator("run", **options)


def test_tasks_without_text_are_refused(trained):
    problem = Associations(keys=4, examined=3).load()
    trained(Trained(parrot().experiment, problem, None))
    with pytest.raises(ValueError, match=r"^run: its task does not map text to text; use attnlab sample"):
        Translator("run")
    with pytest.raises(ValueError, match=r"^--beam 2 has no effect: this task is not decoded symbol by symbol"):
        Translator("run", DecodingOptions(beam=2))
