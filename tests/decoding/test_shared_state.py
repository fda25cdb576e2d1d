from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.decoding.beam import in_any
from attnlab.decoding.shared_state import axes, shared
from attnlab.models import MODELS
from attnlab.tasks.base.shapes import Pairs


class State(NamedTuple):
    source: jax.Array
    count: jax.Array
    sum: jax.Array
    total: jax.Array
    late: jax.Array


def step(state, token):
    """Updates a state whose `late` depends on the tokens through `sum` only, two steps later."""
    new = State(state.source, state.count + 1, state.sum + token, state.total + state.sum, state.late + state.total)
    return state.source, new


def test_arrays_that_depend_on_tokens_are_found_through_others():
    zero = jnp.zeros((), jnp.int32)
    found = shared(step, State(jnp.ones(3), zero, zero, zero, zero), zero)
    assert found == State(source=True, count=True, sum=False, total=False, late=False)
    assert axes(found) == State(None, None, 0, 0, 0)


def test_nothing_is_shared_if_all_changes():
    state = {"a": jnp.zeros(2), "b": jnp.zeros(())}
    mixed = lambda state, token: (state["a"], {"a": state["a"] + state["b"], "b": state["b"] + token})
    assert shared(mixed, state, jnp.zeros(())) == {"a": False, "b": False}


def test_a_transformer_shares_what_it_reads_and_the_number_of_tokens():
    model = MODELS["transformer"].create(jax.random.key(0), Pairs(9, 11, 7, 8))
    state = model.start(jnp.asarray([3, 4, 5, 0, 0, 0, 0], jnp.int32), jnp.arange(7) < 3, 8)
    found = shared(model.step, state, jnp.asarray(1, jnp.int32))
    leaves = {jax.tree_util.keystr(path): each for path, each in jax.tree_util.tree_leaves_with_path(found)}
    assert leaves[".i"]
    assert any(leaves.values())
    assert not all(leaves.values())


def test_a_condition_holds_for_all_if_it_holds_for_one():
    conditions = np.array([[False, False], [False, True]])
    assert not in_any(jnp.asarray(False))
    np.testing.assert_array_equal(jax.vmap(in_any)(conditions[0]), [False, False])
    np.testing.assert_array_equal(jax.vmap(in_any)(conditions[1]), [True, True])
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(in_any)))(conditions), np.ones((2, 2)))
