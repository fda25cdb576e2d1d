from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.decoding import greedy


def test_it_takes_the_most_likely_symbol_until_the_end_and_pads_after_it():
    # The next symbol is a table lookup. The state counts the steps.
    follows = jnp.array([0, 4, 2, 5, 3, 2])
    step = lambda state, token: (10.0 * jax.nn.one_hot(follows[token], 6), state + 1)
    np.testing.assert_array_equal(greedy(step, jnp.int32(0), 1, 2, 7), [4, 3, 5, 2, 0, 0, 0])


def test_bos_and_padding_are_never_chosen():
    step = lambda state, token: (jnp.array([9.0, 9.0, 0.0, 1.0]), state)
    np.testing.assert_array_equal(greedy(step, jnp.int32(0), 1, 2, 3), [3, 3, 3])


def test_a_length_beyond_the_state_is_refused():
    class State(NamedTuple):
        length: int = 4

    with pytest.raises(ValueError, match="length=5 must be at most 4"):
        greedy(lambda state, token: None, State(), 1, 2, 5)
