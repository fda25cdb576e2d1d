from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attnlab.training import state as lane
from attnlab.training.config import Train
from attnlab.training.optimiser import schedule
from attnlab.training.state import parameter_names

TRAIN = Train(steps=20, warmup=0, schedule="constant", clip=0.0, seeds=1)


def create(key):
    return {"w": jax.random.normal(key, (3,))}


def loss(model, batch, key):
    return jnp.mean((batch["x"] @ model["w"] - batch["y"]) ** 2), {"size": jnp.sum(model["w"] ** 2)}


def batch(n=4):
    return {"x": jax.random.normal(jax.random.key(5), (n, 3)), "y": jnp.arange(float(n))}


def start(seed=0, rate=0.1, train=TRAIN):
    return lane.start(create, train, jnp.uint32(seed), jnp.float32(rate))


def test_a_step_equals_adam_of_optax():
    before = start()
    after, metrics = lane.step(loss, TRAIN, before, batch())
    adam = optax.adam(0.1)
    gradient = jax.grad(lambda m: loss(m, batch(), None)[0])(before.model)
    change, _ = adam.update(gradient, adam.init(before.model))
    np.testing.assert_allclose(after.model["w"], before.model["w"] + change["w"], rtol=1e-5)
    assert int(after.step) == 1
    np.testing.assert_allclose(metrics["gradient_norm"], optax.tree.norm(gradient), rtol=1e-6)


def test_weight_decay_is_decoupled():
    train = Train(steps=20, warmup=0, schedule="constant", clip=0.0, weight_decay=0.5)
    flat = lambda model, batch, key: (0.0 * jnp.sum(model["w"]), {})
    after, _ = lane.step(flat, train, start(train=train), batch())
    np.testing.assert_allclose(after.model["w"], start().model["w"] * (1 - 0.1 * 0.5), rtol=1e-6)


def test_adams_decay_rates_are_those_of_the_config():
    train = Train(steps=20, warmup=0, schedule="constant", clip=0.0, beta1=0.0, beta2=0.5)
    state = start(train=train)
    for _ in range(2):
        state, _ = lane.step(loss, train, state, batch())
    adam, model = optax.adam(0.1, b1=0.0, b2=0.5), start().model
    memory = adam.init(model)
    for _ in range(2):
        change, memory = adam.update(jax.grad(lambda m: loss(m, batch(), None)[0])(model), memory)
        model = {"w": model["w"] + change["w"]}
    np.testing.assert_allclose(state.model["w"], model["w"], rtol=1e-5)


@jax.tree_util.register_pytree_with_keys_class
class Paced:
    """A model of two parts. One of them learns at a quarter of the rate."""

    lr_multipliers: ClassVar = {"slow": 0.25}

    def __init__(self, quick, slow):
        self.quick, self.slow = quick, slow

    def tree_flatten_with_keys(self):
        name = jax.tree_util.GetAttrKey
        return [(name("quick"), self.quick), (name("slow"), self.slow)], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def test_a_part_of_a_model_can_have_its_own_learning_rate():
    begin = lambda key: Paced({"w": jnp.zeros(3)}, {"w": jnp.zeros(3)})
    down = lambda model, batch, key: (jnp.sum(model.quick["w"]) + 5 * jnp.sum(model.slow["w"]), {})
    before = lane.start(begin, TRAIN, jnp.uint32(0), jnp.float32(0.1))
    after, _ = lane.step(down, TRAIN, before, batch())
    # Adam's first step is the rate, whatever the gradient's size.
    np.testing.assert_allclose(after.model.quick["w"], -0.1, rtol=1e-5)
    np.testing.assert_allclose(after.model.slow["w"], -0.025, rtol=1e-5)


def test_accumulated_gradients_equal_the_whole_batch():
    whole, _ = lane.step(loss, TRAIN, start(), batch(8))
    parts, metrics = lane.step(
        loss, Train(steps=20, warmup=0, schedule="constant", clip=0.0, accumulate=4), start(), batch(8)
    )
    np.testing.assert_allclose(parts.model["w"], whole.model["w"], rtol=1e-4)
    np.testing.assert_allclose(metrics["loss"], loss(start().model, batch(8), None)[0], rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_lane_that_diverges_is_frozen_and_others_continue(bad):
    states = jax.vmap(lambda seed: lane.start(create, TRAIN, seed, jnp.float32(0.1)))(jnp.arange(2, dtype=jnp.uint32))
    run = jax.vmap(lambda state, batch: lane.step(loss, TRAIN, state, batch))
    both = jax.tree.map(lambda x: jnp.stack([x, x]), batch())
    good, _ = run(states, both)
    spoiled, _ = run(good, {**both, "y": both["y"].at[1, 0].set(bad)})
    later, _ = run(spoiled, both)
    np.testing.assert_array_equal(later.diverged_step, [-1, 1])
    assert [parameter_names(good.model)[n] if n >= 0 else None for n in later.first_nonfinite] == [None, "the loss"]
    np.testing.assert_array_equal(later.model["w"][1], good.model["w"][1])
    assert np.abs(later.model["w"][0] - spoiled.model["w"][0]).max() > 0
    np.testing.assert_array_equal(jax.tree.leaves(later.optimiser)[0][1], jax.tree.leaves(good.optimiser)[0][1])


def test_lanes_equal_single_runs():
    states = jax.vmap(lambda s, r: lane.start(create, TRAIN, s, r))(
        jnp.array([3, 3], jnp.uint32), jnp.array([0.1, 0.01])
    )
    both = jax.tree.map(lambda x: jnp.stack([x, x]), batch())
    together, _ = jax.vmap(lambda state, batch: lane.step(loss, TRAIN, state, batch))(states, both)
    for n, rate in enumerate((0.1, 0.01)):
        alone, _ = lane.step(loss, TRAIN, start(3, rate), batch())
        np.testing.assert_allclose(together.model["w"][n], alone.model["w"], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("constant", [0.25, 1, 1, 1]),
        ("cosine", [0.25, 1, (1 + np.cos(np.pi * 8 / 17)) / 2, (1 + np.cos(np.pi * 16 / 17)) / 2]),
        ("inverse_sqrt", [0.25, 1, (4 / 12) ** 0.5, 0.2**0.5]),
    ],
)
def test_schedules_rise_to_their_peak_and_fall_as_named(name, expected):
    share = schedule(Train(steps=20, warmup=4, schedule=name))
    np.testing.assert_allclose([share(step) for step in (0, 3, 11, 19)], expected, atol=1e-6)


def test_the_cosine_schedule_ends_at_its_final_rate():
    share = schedule(Train(steps=20, warmup=4, final_rate=0.1))
    expected = [0.1 + 0.9 * (1 + np.cos(np.pi * n / 17)) / 2 for n in (0, 8, 16)]
    np.testing.assert_allclose([share(step) for step in (3, 11, 19)], expected, atol=1e-6)


@pytest.mark.parametrize("warmup", [0, 1, 4, 19, 20, 50])
def test_the_learning_rate_is_never_zero(warmup):
    share = schedule(Train(steps=20, warmup=warmup, schedule="cosine"))
    assert all(share(step) > 0 for step in range(20))


def test_a_lane_whose_model_overflows_in_its_last_step_has_diverged():
    before = start(rate=1e38)
    after, metrics = lane.step(loss, TRAIN, before, batch())
    assert np.isfinite(metrics["loss"])
    assert np.isfinite(metrics["gradient_norm"])
    assert int(after.diverged_step) == 0
    assert parameter_names(before.model)[int(after.first_nonfinite)] == "w"
    np.testing.assert_array_equal(after.model["w"], before.model["w"])


@jax.custom_vjp
def poisoned(x, harm):
    return x


poisoned.defvjp(lambda x, harm: (x, harm), lambda harm, g: (g + harm, jnp.zeros_like(harm)))


@pytest.mark.parametrize("harm", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("leaf", ["a", "b"])
def test_the_leaf_whose_gradient_is_not_finite_is_named(leaf, harm):
    model = {"a": jnp.ones((2,)), "b": jnp.ones((3,))}
    whole = lambda model, batch, key: (sum(jnp.sum(poisoned(x, batch[name])) for name, x in model.items()), {})
    before = lane.start(lambda key: model, TRAIN, jnp.uint32(0), jnp.float32(0.1))
    after, metrics = lane.step(whole, TRAIN, before, {name: jnp.float32(harm if name == leaf else 0) for name in model})
    assert np.isfinite(metrics["loss"])
    assert parameter_names(model)[int(after.first_nonfinite)] == f"the gradient of {leaf}"
    np.testing.assert_array_equal(after.model[leaf], model[leaf])
