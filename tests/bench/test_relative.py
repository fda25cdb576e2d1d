import pytest

from attnlab.bench.calls import FORWARD
from attnlab.bench.measuring import BenchConfig
from attnlab.bench.relative import relative_table, side_by_side
from attnlab.mechanisms import Softmax
from tests.analysis.examples import Mean, Mute, Sum
from tests.bench.test_table import shown

PLAN = BenchConfig({"softmax": Softmax(), "sum": Sum(), "mean": Mean(), "mute": Mute()}, (4, 8), 2, 4, repeat=2)


def test_each_mechanism_uses_its_first_supported_mask_and_the_base_is_one():
    found = side_by_side(PLAN, "softmax", FORWARD)
    assert [(each.name, each.mask) for each in found[:3]] == [
        ("softmax", "full"),
        ("sum", "causal"),
        ("mean", "full"),
    ]
    assert {each.T for each in found} == {4, 8}
    assert (found[0].times.median, found[0].memory) == (1.0, 1.0)
    lines = shown(relative_table(found, "softmax", FORWARD))
    assert next(line for line in lines if line.startswith("softmax ")).split()[-1] == "1.000"


@pytest.mark.parametrize(
    ("base", "words"), [("linear", "is not one of the mechanisms"), ("mute", "does not support the masks full")]
)
def test_a_base_that_cannot_be_measured(base, words):
    with pytest.raises(ValueError, match=words):
        side_by_side(PLAN, base, FORWARD)
