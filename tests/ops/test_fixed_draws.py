from contextlib import contextmanager
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Reformer, causal
from attnlab.models.associative_memory import fingerprint, rotation
from attnlab.ops.fixed_draws import fixed_draws, fixed_key
from attnlab.ops.mask import Full
from tests.mechanisms.contract import every, inputs


@contextmanager
def offset(value):
    jax.config.update("jax_random_seed_offset", value)
    try:
        yield
    finally:
        jax.config.update("jax_random_seed_offset", 0)


SETTINGS = {
    "partitionable": lambda: jax.threefry_partitionable(False),
    "generator": lambda: jax.default_prng_impl("rbg"),
    "offset": lambda: offset(7),
}


@pytest.fixture(params=SETTINGS)
def setting(request):
    return SETTINGS[request.param]


def plain():
    return jax.random.normal(jax.random.key(3), (4,), jnp.float32)


def fixed():
    with fixed_draws():
        return jax.random.normal(fixed_key(3), (4,), jnp.float32)


def hashed():
    mechanism = Reformer()
    q, k, v, extras = inputs(mechanism, 33)
    return mechanism.attend(q, k, v, Full(), **extras)


def rotated():
    return rotation(fingerprint(jnp.arange(5), jnp.arange(5)), 6)


def test_by_default_keys_and_draws_are_those_of_jax():
    np.testing.assert_array_equal(fixed(), plain())
    for seed in (0, 7, -1, 2**32 - 1):
        np.testing.assert_array_equal(jax.random.key_data(fixed_key(seed)), [0, seed % 2**32])


@pytest.mark.parametrize("draw", [fixed, hashed, rotated])
def test_fixed_draws_are_the_same_under_other_settings(draw, setting):
    before, jaxs = np.asarray(draw()), np.asarray(plain())
    with setting():
        assert not np.array_equal(plain(), jaxs)
        np.testing.assert_array_equal(draw(), before)
        np.testing.assert_allclose(jax.jit(lambda: draw())(), before, atol=1e-6)


@every
def test_only_reformer_draws_while_it_computes(name):
    mechanism = MECHANISMS[name]
    run = partial(causal, mechanism) if mechanism.traits.decodes else partial(mechanism.attend, mask=Full())
    program = str(jax.make_jaxpr(lambda q, k, v, extras: run(q, k, v, **extras))(*inputs(mechanism, 6)))
    assert ("random_" in program or "threefry" in program) is (name == "reformer")
