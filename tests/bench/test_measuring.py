import json

import pytest

from attnlab.analysis.roofline import Machine
from attnlab.bench import measuring, peers
from attnlab.bench.calls import FORWARD
from attnlab.bench.measuring import BenchConfig, bench, growths, record
from attnlab.mechanisms import Softmax
from attnlab.storage.json_file import dumps
from tests.analysis.examples import Sum
from tests.bench.stand_ins import measured, peer

MACHINE = Machine("cpu", 1e11, 1e10)


def plan(**changes):
    settings = {"lengths": (8, 16), "heads": 2, "width": 4, "repeat": 2, "passes": (FORWARD,)} | changes
    return BenchConfig({"softmax": Softmax(), "sum": Sum()}, **settings)


@pytest.fixture
def stand_ins(monkeypatch):
    monkeypatch.setattr(peers, "PEERS", {"same": peer(), "other": peer(wrong=0.5)})


def test_every_cell_is_timed_alternating_with_its_peers(stand_ins):
    told = []
    found = list(bench(plan(peers=True), told.append))
    assert [(each.name, each.mask, each.T) for each in found] == [
        *(("softmax", mask, T) for mask in ("full", "causal") for T in (8, 16)),
        ("sum", "full", 8),
        *(("sum", "causal", T) for T in (8, 16)),
    ]
    softmax, refused = found[0], found[4]
    assert len(softmax.seconds) == len(softmax.peers["same"].seconds) == 2
    assert softmax.peers["same"].difference < 1e-5
    assert softmax.peers["other"].difference > 0.1
    assert softmax.peers["same"].times.median == pytest.approx(
        sum(b / a for a, b in zip(softmax.seconds, softmax.peers["same"].seconds, strict=True)) / 2
    )
    assert (refused.why_not, refused.seconds, refused.median) == ("does not support this mask", (), None)
    assert told[2] == "sum, full, forward: T=8 does not support this mask (3 of 4)"
    assert found[-1].peers == {}


def test_peers_are_only_called_on_request(stand_ins):
    assert all(each.peers == {} for each in bench(plan(lengths=(4,))))


def test_lengths_that_do_not_fit_into_memory_are_left_out_with_longer_ones(monkeypatch):
    monkeypatch.setattr(measuring, "_room", lambda: 1.0)
    found = list(bench(plan(masks=("causal",))))
    assert [(each.name, each.T) for each in found] == [("softmax", 8), ("sum", 8)]
    assert found[0].why_not.startswith("needs 0.0 GB")


def test_growth_of_each_row_and_of_its_peers():
    found = measured(power=2, peers=("torch",)) + measured("linear", power=1)
    fits = growths(found)
    assert fits["softmax", "causal", "forward"]["seconds"].exponent == pytest.approx(2)
    assert fits["softmax", "causal", "forward"]["seconds of torch"].exponent == pytest.approx(0)
    assert fits["linear", "causal", "forward"]["memory"].exponent == pytest.approx(1)


def test_the_record_holds_everything(stand_ins):
    asked = plan(lengths=(4, 8), peers=True)
    found = json.loads(dumps(record(asked, list(bench(asked)), MACHINE)))
    assert {"jax", "cores", "processor", "flops", "bandwidth", "ridge"} <= set(found["machine"])
    assert found["plan"]["mechanisms"]["sum"] == "Sum()"
    assert set(found["peers"]) == {"same", "other"}
    assert len(found["measured"]) == 7
    assert {len(each["seconds"]) for each in found["measured"]} == {0, 2}
    assert found["growth"][0]["seconds"]["lengths"] == [4, 8]
