import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import weights
from attnlab.mechanisms.sigmoid import Sigmoid
from attnlab.ops.mask import Causal, Full
from tests.mechanisms.contract import causal, inputs, near

pytestmark = pytest.mark.usefixtures("x64")


def by_hand(q, k, v, counts, shift=None):
    q, k, v = (np.asarray(x) for x in (q, k, v))
    y = np.zeros((len(q), v.shape[1]))
    for t, seen in enumerate(counts):
        for j in range(seen):
            score = q[t] @ k[j] / np.sqrt(q.shape[1]) + (-np.log(seen) if shift is None else shift)
            y[t] += v[j] / (1 + np.exp(-score))
    return y


@pytest.mark.parametrize("shift", [None, -2.0])
def test_it_is_its_equation(shift):
    q, k, v, _ = inputs(Sigmoid(), 5, 7)
    near(Sigmoid(shift).attend(q, k, v, Full()), by_hand(q, k, v, [7] * 5, shift))
    near(Sigmoid(shift).attend(q[:5], k[:5], v[:5], Causal()), by_hand(q, k, v, range(1, 6), shift))


def test_padding_has_no_effect():
    q, k, v, _ = inputs(Sigmoid(), 6)
    keep = jnp.array([1, 0, 1, 1, 0, 1], bool)
    near(causal(Sigmoid(), q, k, v, keep=keep)[keep], by_hand(q[keep], k[keep], v[keep], range(1, 5)))


def test_weights_of_scores_of_zero_sum_to_about_one():
    q = jnp.zeros((1, 4))
    total = weights(Sigmoid(), q, jnp.zeros((1000, 4))).sum()
    assert float(total) == pytest.approx(1000 / 1001)
