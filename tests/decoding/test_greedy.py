import jax
import jax.numpy as jnp
import numpy as np

from attnlab.decoding import greedy


def test_it_follows_the_likeliest_until_the_end_and_pads_after_it():
    # A model whose next symbol is a table lookup; state counts the steps taken.
    follows = jnp.array([0, 4, 2, 5, 3, 2])
    step = lambda state, token: (10.0 * jax.nn.one_hot(follows[token], 6), state + 1)
    np.testing.assert_array_equal(greedy(step, jnp.int32(0), 1, 2, 7), [4, 3, 5, 2, 0, 0, 0])


def test_the_beginning_and_padding_are_never_chosen():
    step = lambda state, token: (jnp.array([9.0, 9.0, 0.0, 1.0]), state)
    np.testing.assert_array_equal(greedy(step, jnp.int32(0), 1, 2, 3), [3, 3, 3])
