"""What another process counts is what would be counted here, and what it cannot count is left."""

import sys
import time
from dataclasses import dataclass

import pytest

from attnlab.lab.planning import helper as counting
from attnlab.lab.planning.helper import helped, helper
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.summary import show
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import MECHANISMS, Linear, Mechanism, Wrapper
from attnlab.models import AssociativeMemory
from attnlab.tasks.synthetic.associations import Associations
from tests.small import EXPERIMENT

SMALL = [change(EXPERIMENT, task=Associations(keys=4, examined=20), model=AssociativeMemory(width=w)) for w in (8, 16)]


def filled(ledger, experiments, at_least, seconds=120):
    """Whether so many came to be known within the time."""
    # All are there before it asks for the first.
    for each in experiments:
        ledger.expect(each)
    with helper() as process, helped(ledger, process):
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
    class Mine(Wrapper):
        mechanism: Mechanism = Linear()

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


def test_on_one_core_there_is_none(monkeypatch):
    monkeypatch.setattr(counting, "cores", lambda: [0])
    with helper() as process, helped(Ledger(), process):
        assert process is None


def test_what_a_study_costs_is_the_same_with_it_and_without(monkeypatch):
    study = Study(SMALL[0], over("model.width", small=8, middle=12, large=16))
    started, alone = [], counting.subprocess.Popen
    monkeypatch.setattr(counting.subprocess, "Popen", lambda *a, **k: started.append(a) or alone(*a, **k))
    monkeypatch.setattr(counting, "MANY", 4)
    without = show(study)
    assert started == []
    monkeypatch.setattr(counting, "MANY", 3)
    assert show(study) == without
    assert len(started) == 1


def test_to_start_it_takes_nothing_heavy():
    """It is of use because it imports while the study is read."""
    code = "import sys, attnlab.lab.planning.helper as c; c.helper; sys.exit('jax' in sys.modules)"
    assert counting.subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
