import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attnlab.training import state as lane
from attnlab.training.config import Train
from attnlab.training.packing import LARGEST, ROW, Packing


def tree(scale=1.0):
    """Returns arrays of each kind: full rows, part of a row, a scalar, empty, too large to copy, and another dtype."""
    shapes = {"a": (3,), "b": (2, ROW), "c": (), "d": (0, 4), "e": (LARGEST + 1,), "f": (5, 7)}
    rng = np.random.default_rng(0)
    found = {name: jnp.asarray(scale * rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
    return {**found, "g": jnp.asarray(scale * rng.normal(size=(9,)), jnp.bfloat16)}


def test_unpacking_gives_back_every_array():
    packing = Packing(tree())
    packed = packing.pack(tree())
    assert [x.shape for x in packed] == [(5, ROW), (1, ROW), (LARGEST + 1,)]
    jax.tree.map(np.testing.assert_array_equal, packing.unpack(packed), tree())
    assert jax.tree.map(lambda x: x.dtype, packing.unpack(packed)) == jax.tree.map(lambda x: x.dtype, tree())


def test_squares_are_those_of_each_array_in_order():
    packing = Packing(tree())
    expected = [float(np.sum(np.square(np.asarray(x, np.float64)))) for x in jax.tree.leaves(tree())]
    np.testing.assert_allclose(packing.squares(packing.pack(tree())), expected, rtol=1e-2)  # one is in bfloat16
    np.testing.assert_allclose(packing.squares(packing.pack(tree()))[:-1], expected[:-1], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_squares_that_are_not_finite_stay_with_their_array(bad):
    spoiled = {**tree(), "a": jnp.asarray([0, bad, 0], jnp.float32)}
    packing = Packing(spoiled)
    assert np.isfinite(packing.squares(packing.pack(spoiled))).tolist() == [False] + 6 * [True]


def test_one_number_for_each_array_reaches_all_its_numbers():
    packing = Packing(tree(0.0))
    packed = [x + n for x, n in zip(packing.pack(tree(0.0)), packing.spread([1, 2, 3, 4, 5, 6, 7]), strict=True)]
    for n, leaf in enumerate(jax.tree.leaves(packing.unpack(packed)), start=1):
        np.testing.assert_array_equal(leaf, np.full(leaf.shape, n))


def test_a_step_on_packed_arrays_equals_optax_on_the_tree():
    """Takes five steps with clipping and weight decay, on small and large arrays."""
    draw = lambda key, *shape: jax.random.normal(key, shape)
    names = {"w": (300, 300), "v": (20, 30), "b": (30,)}
    create = lambda key: {name: draw(jax.random.fold_in(key, n), *names[name]) for n, name in enumerate(names)}
    train = Train(steps=9, warmup=0, schedule="constant", clip=0.5, weight_decay=0.1, seeds=1)
    loss = lambda model, batch, key: (sum(jnp.sum(jnp.sin(batch["x"] * x)) for x in model.values()), {})
    state = lane.start(create, train, jnp.uint32(0), jnp.float32(0.1))
    adam = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(0.1, weight_decay=0.1))
    model, memory = state.model, adam.init(state.model)
    for n in range(5):
        state, _ = jax.jit(lane.step, static_argnums=(0, 1))(loss, train, state, {"x": jnp.float32(n + 1)})
        gradient = jax.grad(lambda model, n=n: loss(model, {"x": jnp.float32(n + 1)}, None)[0])(model)
        change, memory = adam.update(gradient, memory, model)
        model = optax.apply_updates(model, change)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), state.model, model)
