import numpy as np
import pytest

from attnlab.mechanisms import Softmax
from attnlab.ops.mask import Causal, Full
from attnlab.ops.score import SCORES, location
from tests.mechanisms.contract import K, V, attend, causal, extend, inputs, near

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("score", SCORES)
def test_every_score_decodes_as_it_attends(score):
    mechanism = Softmax(score=SCORES[score], length=8)
    q, k, v, learned = inputs(mechanism, 6)
    whole = attend(mechanism, q, k, v, Causal(), **learned)
    near(causal(mechanism, q, k, v, **learned), whole)
    near(causal(mechanism, q, k, v, block=2, **learned), whole)


@pytest.mark.parametrize("score", SCORES)
def test_turns_are_for_products(score):
    assert Softmax(score=SCORES[score]).turns == (score in ("dot", "scaled_dot", "cosine"))


@pytest.mark.parametrize("block", [None, 3])
def test_location_reads_the_column_of_where_a_key_stands(block):
    mechanism = Softmax(score=location, length=9, block=block)
    q, k, v, learned = inputs(mechanism, 4)
    j = np.array([7, 0, 3, 5], np.int32)
    y = attend(mechanism, q, k, v, Full(), i=np.arange(4), j=j, **learned)
    shares = np.exp(q @ learned["w"][:, j])
    near(y, shares / shares.sum(axis=1, keepdims=True) @ v)
    keep = np.array([0, 1, 0, 1], bool)
    padded = causal(mechanism, q, k, v, keep=keep, **learned)
    near(padded[keep], causal(mechanism, q[keep], k[keep], v[keep], **learned))


def test_location_decodes_from_a_cache_longer_than_itself_and_no_further_than_it_learned():
    mechanism = Softmax(score=location, length=3)
    q, k, v, learned = inputs(mechanism, 4)
    state = mechanism.start(10, K, V)
    y, state = extend(mechanism, state, q[:3], k[:3], v[:3], **learned)
    near(y, causal(mechanism, q[:3], k[:3], v[:3], **learned))
    with pytest.raises(ValueError, match="a key stands at 3"):
        mechanism.extend(state, q[3:], k[3:], v[3:], **learned)
    y, _ = extend(mechanism, state, q[3:], k[3:], v[3:], **learned)
    assert np.isnan(y).all()


def test_location_refuses_more_keys_than_positions_and_grows_by_sized():
    mechanism = Softmax(score=location, length=3)
    q, k, v, learned = inputs(mechanism, 4)
    for run in (mechanism.attend, mechanism.whole):
        with pytest.raises(ValueError, match="length=3: there are 4 keys"):
            run(q, k, v, **learned)
    longer = mechanism.sized(4)
    assert longer.learned == {"w": ("K", 4)}
    assert Softmax().sized(4) == Softmax()


def test_sizes_that_cannot_be_are_refused():
    for name in ("block", "length"):
        with pytest.raises(ValueError, match=f"{name}=0"):
            Softmax(**{name: 0})
