import jax.numpy as jnp
import numpy as np

from attnlab.ops.order import by_position, ranks


def test_kept_tokens_are_in_the_order_of_positions():
    keep, place = jnp.array([True, False, True, True, False]), jnp.array([7, 0, 2, 2, 1], jnp.int32)
    order = by_position(keep, place)
    np.testing.assert_array_equal(order, [2, 3, 0, 1, 4])
    np.testing.assert_array_equal(ranks(order), [2, 3, 0, 1, 4])
    np.testing.assert_array_equal(ranks(jnp.array([3, 0, 1, 2], jnp.int32)), [1, 2, 3, 0])


def test_negative_positions_come_first_and_numpy_arrays_are_accepted():
    np.testing.assert_array_equal(by_position(np.ones(3, bool), np.array([1, -2, 0], np.int32)), [1, 2, 0])
