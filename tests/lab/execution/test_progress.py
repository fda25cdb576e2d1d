import io
import re

import pytest
from rich.console import Console

from attnlab.lab.execution.live_bar import Terminal
from attnlab.lab.execution.log_lines import Plain
from attnlab.lab.execution.progress import choose
from attnlab.tasks.base.metrics import EXACT_MATCH
from attnlab.training.progress import Progress, Silent


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


def train(progress: Progress, clock, variants=("softmax", "linear")):
    """Reports the events of variants of 40 steps, at one second per step."""
    for index, name in enumerate(variants):
        progress.variant(name, index, len(variants), 40, done_steps=0 if index == 0 else 8)
        progress.compiling("the training step (batch 64, 24 tokens)")
        progress.compiled("the training step (batch 64, 24 tokens)", 4.25)
        for step in range(8 if index == 0 else 16, 41, 8):
            clock.now += 8.0
            progress.advanced(step, 1 / step)
            if step % 16 == 0:
                progress.evaluated(step, {EXACT_MATCH: step / 40})
                progress.saved(step)
        progress.finished()
    progress.note("all lanes finite")
    progress.close()


def test_plain_progress_lines():
    stream, clock = io.StringIO(), Clock()
    train(Plain(stream, every=10.0, clock=clock), clock, ["softmax"])
    assert stream.getvalue().splitlines() == [
        "softmax: variant 1 of 1, 40 steps",
        "softmax: compiling the training step (batch 64, 24 tokens) …",
        "softmax: compiled the training step (batch 64, 24 tokens) in 4.2 s",
        "softmax: step 16 of 40, loss 0.0625, 1 steps/s, 24 s left",
        "softmax: step 16 of 40, loss 0.0625, exact match 40.0%",
        "softmax: saved at step 16",
        "softmax: step 32 of 40, loss 0.03125, 1 steps/s, 8 s left",
        "softmax: step 32 of 40, loss 0.03125, exact match 80.0%",
        "softmax: saved at step 32",
        "softmax: done in 40 s",
        "all lanes finite",
    ]


def test_plain_names_the_resumed_step_and_flushes_each_line():
    class Stream(io.StringIO):
        flushed = 0

        def flush(self):
            self.flushed += 1

    stream = Stream()
    plain = Plain(stream)
    plain.variant("linear", 1, 2, 40, 8)
    assert stream.getvalue() == "linear: variant 2 of 2, 40 steps, resumed at step 8\n"
    assert stream.flushed


def test_plain_prints_nothing_within_ten_seconds():
    stream, clock = io.StringIO(), Clock()
    plain = Plain(stream, every=10.0, clock=clock)
    plain.variant("softmax", 0, 1, 1000, 0)
    for step in range(1, 100):
        clock.now += 0.05
        plain.advanced(step, 1.0)
    assert len(stream.getvalue().splitlines()) == 1


def test_a_loss_that_is_not_finite_is_shown():
    stream = io.StringIO()
    plain = Plain(stream, every=0.0)
    plain.advanced(1, float("nan"))
    assert "loss nan" in stream.getvalue()


def test_terminal_progress():
    stream, clock = io.StringIO(), Clock()
    console = Console(file=stream, force_terminal=True, width=160, color_system=None)
    train(Terminal(console, clock=clock), clock)
    shown = stream.getvalue()
    for words in (
        "softmax: compiled the training step (batch 64, 24 tokens) in 4.2 s",
        "linear: compiled",
        "\nall lanes finite",
        "40/40",
        "loss 0.025",
        "exact match 80.0%",
        "compiling the training step (batch 64, 24 tokens) …",
        "creating the models …",
        "reading the checkpoint of step 8 …",
    ):
        assert words in shown, words
    # Each variant leaves one line with its duration: 40 and 32 steps of one second each.
    lines = [re.split(r"\r|\x1b\[2K", line)[-1] for line in shown.split("\n")]
    assert [line.split()[0] for line in lines if " done in " in line] == ["softmax", "linear"]
    assert "softmax  " + "━" * 40 + "  40/40  loss 0.025  exact match 80.0%  done in 40 s" in shown
    assert "  done in 32 s" in shown
    # The cursor is hidden while a line is live, and is shown again afterwards.
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 2


def test_only_the_current_variant_is_updated():
    stream, clock = io.StringIO(), Clock()
    console = Console(file=stream, force_terminal=True, width=80, height=24, color_system=None)
    terminal = Terminal(console, clock=clock)
    for index in range(40):
        terminal.variant(f"v{index}", index, 40, 10)
        terminal.advanced(10, 1.0)
        terminal.finished()
    terminal.variant("last", 40, 41, 10)
    stream.truncate(0)
    terminal.show()
    assert "last" in stream.getvalue()
    assert "v39" not in stream.getvalue()
    terminal.close()


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 160])
@pytest.mark.parametrize("name", ["softmax", "gated-delta-with-a-long-name-of-forty-signs"])
def test_a_line_fits_and_keeps_name_steps_and_time_left(width, name):
    terminal = Terminal(console := Console(file=io.StringIO(), width=width))
    terminal.variant(name, 0, 1, 8000)
    terminal.evaluated(1200, {EXACT_MATCH: 0.8})
    terminal.advanced(1200, 0.3214, 6800 / 552)
    with console.capture() as captured:
        console.print(terminal.line())
    (line,) = captured.get().splitlines()
    assert len(line) <= width
    assert line.startswith("softmax" if name == "softmax" else name[:5])
    assert "1200/8000" in line
    if width >= 40:
        assert "9 min 12 s left" in line
    if width >= 80:
        assert "loss 0.3214" in line
    if width == 160:
        assert "━" in line
        assert "exact match 80.0%" in line


def test_the_line_of_a_preparation_is_removed():
    stream = io.StringIO()
    with Terminal(Console(file=stream, force_terminal=True, width=160, color_system=None)).waiting("checking"):
        pass
    assert "checking …" in stream.getvalue()
    # The line is erased, and the cursor is shown again.
    assert stream.getvalue().endswith("\x1b[1A\x1b[2K")
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1
    log = io.StringIO()
    for progress in (Plain(log), Silent()):
        with progress.waiting("checking"):
            pass
    assert log.getvalue() == ""


def test_terminal_does_not_interpret_markup():
    stream = io.StringIO()
    terminal = Terminal(Console(file=stream, force_terminal=True, width=160, color_system=None))
    terminal.variant("[bold]x", 0, 1, 3)
    terminal.note("[/red] and :smile:")
    terminal.close()
    assert "[bold]x" in stream.getvalue()
    assert "[/red] and :smile:" in stream.getvalue()


def test_terminal_can_close_before_the_first_variant():
    terminal = Terminal(Console(file=io.StringIO()))
    terminal.close()
    terminal.close()


def test_silent_prints_nothing(capsys):
    train(Silent(), Clock())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("terminal", "kind"), [(True, Terminal), (False, Plain)])
def test_choose_depends_on_the_stream(terminal, kind):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    assert isinstance(choose(stream), kind)


def test_a_note_that_begins_with_the_variant_has_its_name_once():
    plain, shown = io.StringIO(), io.StringIO()
    for progress in (Plain(plain), Terminal(Console(file=shown, force_terminal=True, width=160, color_system=None))):
        progress.variant("gru", 0, 1, 3)
        progress.note("gru: the maps were not saved")
        progress.note("continues from step 2")
        progress.close()
    for stream in (plain, shown):
        assert "gru: the maps were not saved" in stream.getvalue()
        assert "gru: gru" not in stream.getvalue()
        assert "gru: continues from step 2" in stream.getvalue()


@pytest.mark.parametrize("end", ["finished", "failed"])
def test_notes_after_a_variant_do_not_carry_its_name(end):
    log, shown = io.StringIO(), io.StringIO()
    for progress in (Plain(log), Terminal(Console(file=shown, force_terminal=True, width=160, color_system=None))):
        progress.variant("gru", 0, 2, 3)
        progress.finished() if end == "finished" else progress.failed("gru", "no room")
        progress.note("lstm/lock: the process that held this lock is gone")
        progress.variant("lstm", 1, 2, 3)
        progress.note("continues")
        progress.close()
        progress.note("the page could not be written")
    for lines in (log.getvalue().splitlines(), re.split(r"\n|\r|\x1b\[[0-9?]*[a-zA-Z]", shown.getvalue())):
        assert "lstm/lock: the process that held this lock is gone" in lines
        assert "lstm: continues" in lines
        assert "the page could not be written" in lines
        assert ("variant gru failed: no room" in lines) == (end == "failed")
