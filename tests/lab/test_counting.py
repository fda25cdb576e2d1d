"""What another process counts is what would be counted here, and what it cannot count is left."""

import sys
import time
from dataclasses import dataclass

import pytest

from attnlab.lab import counting
from attnlab.lab.counting import helped
from attnlab.lab.describe import Ledger
from attnlab.lab.study import change
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import Retriever
from attnlab.tasks.associations import Associations
from tests.small import EXPERIMENT

SMALL = [change(EXPERIMENT, task=Associations(keys=4, examined=20), model=Retriever(width=w)) for w in (8, 16)]


@pytest.fixture(autouse=True)
def worthwhile(monkeypatch):
    monkeypatch.setattr(counting, "MANY", 2)


def filled(ledger, experiments, at_least, seconds=120):
    """Whether so many came to be known within the time."""
    with helped(ledger, len(experiments)) as tell:
        tell(experiments)
        end = time.monotonic() + seconds
        while len(ledger.known) < at_least and time.monotonic() < end:
            time.sleep(0.05)
    return len(ledger.known) >= at_least


def test_another_process_counts_the_same():
    theirs, ours = Ledger(), Ledger()
    assert filled(theirs, SMALL, 2)
    assert [theirs.known[theirs.at(each)] for each in SMALL] == [ours.flops(each) for each in SMALL]
    assert len(set(theirs.known.values())) == 2
    # The last came first.
    assert next(iter(theirs.known)) == ours.at(SMALL[-1])


def test_what_it_could_not_read_is_left(monkeypatch):
    @dataclass(frozen=True)
    class Mine(Linear):
        pass

    monkeypatch.setitem(MECHANISMS, "mine", Mine())
    own = change(EXPERIMENT, **{"model.mechanism": Mine()})
    ledger = Ledger()
    assert filled(ledger, [SMALL[0], own], 1)
    assert list(ledger.known) == [ledger.at(SMALL[0])]


@pytest.mark.parametrize("code", ["print('no number')", "raise SystemExit(3)", "import time; time.sleep(600)"])
def test_where_it_fails_or_is_slow_nothing_is_known(code, monkeypatch):
    monkeypatch.setattr(counting, "COMMAND", [sys.executable, "-c", code])
    ledger = Ledger()
    assert not filled(ledger, SMALL, 1, seconds=1)
    assert ledger.known == {}


def test_of_few_experiments_and_on_one_core_there_is_none(monkeypatch):
    def refused(*arguments, **settings):
        raise AssertionError("a process was started")

    monkeypatch.setattr(counting.subprocess, "Popen", refused)
    with helped(Ledger(), 1) as tell:
        tell([change(EXPERIMENT, **{"model.mechanism": Softmax()})])
    monkeypatch.setattr(counting, "cores", lambda: [0])
    with helped(Ledger(), 9) as tell:
        tell(SMALL)
