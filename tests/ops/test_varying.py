"""Loops and custom gradients inside `jax.shard_map`."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from attnlab.ops.varying import varying_like


def test_outside_shard_map_the_carry_is_unchanged():
    carry = {"sum": jnp.zeros(3), "count": 0}
    assert varying_like(carry, jnp.ones(3)) is carry
    assert jax.jit(lambda x: varying_like(carry, x) is carry)(jnp.ones(3))


def test_a_carry_of_constants_varies_like_the_inputs():
    mesh = jax.make_mesh((1, 1), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    seen = {}

    def f(x, w):
        start = {"sum": jnp.zeros(2), "same": w, "count": np.int32(0)}
        for name, like in (("x", x), ("w", w), ("both", (x, w, None, 3, len)), ("none", jnp.ones(2))):
            found = varying_like(start, like)
            seen[name] = {key: set(jax.typeof(value).manual_axis_type.varying) for key, value in found.items()}
        return x

    jax.eval_shape(
        jax.shard_map(f, mesh=mesh, in_specs=(P("data"), P("model")), out_specs=P("data")), jnp.ones(2), jnp.ones(2)
    )
    # The carry itself has an array that varies over "model", with which a loop may combine the others.
    assert seen["x"] == seen["both"] == {name: {"data", "model"} for name in ("sum", "same", "count")}
    assert seen["w"] == seen["none"] == {name: {"model"} for name in ("sum", "same", "count")}


TWO = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, PartitionSpec as P
from attnlab.mechanisms import Delta, Softmax
from attnlab.mechanisms.causal import causal
from attnlab.mechanisms.inputs import shape_of
from attnlab.ops.entropy import cross_entropy
from attnlab import SCORES

draw = lambda seed, *shape: jax.random.normal(jax.random.key(seed), shape)
x, w, b, target = draw(0, 6, 4), draw(1, 4, 7), draw(2, 7), jnp.asarray([0, 1, 2, 6, 3, 0], jnp.int32)
general = Softmax(score=SCORES["general"], block=8)
learned = general.initial(jax.random.key(3), 4, 4)
q, k, v = (draw(seed, 2, 40, 4) for seed in (4, 5, 6))
gates = {name: draw(7 + n, 2, 40, *shape_of(each, 4, 4)) for n, (name, each) in enumerate(Delta().tokens.items())}
softmax = lambda q, k, v, learned: jax.vmap(lambda *x: causal(general, *x, **learned))(q, k, v)
delta = lambda q, k, v, gates: jax.vmap(lambda q, k, v, gates: causal(Delta(chunk=4), q, k, v, **gates))(
    q, k, v, gates)
entropy = lambda x, target, w, b: cross_entropy(x, w, b, target, jnp.ones(len(x)))[0]
here, same = P("data"), P()
mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
for f, given, specs, learns in (
    (entropy, (x, target, w, b), (here, here, same, same), (0, 2, 3)),
    (lambda *given: (softmax(*given) ** 2).sum(), (q, k, v, learned), (here, here, here, same), (0, 1, 2, 3)),
    (lambda *given: (delta(*given) ** 2).sum(), (q, k, v, gates), (here, here, here, here), (0, 1, 2, 3)),
):
    whole = jax.jit(jax.grad(f, learns))(*given)
    total = lambda *given: jax.lax.psum(f(*given), "data")
    parts = jax.shard_map(jax.grad(total, learns), mesh=mesh, in_specs=specs, out_specs=tuple(specs[n] for n in learns))
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(jax.jit(parts)(*given)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * float(abs(one).max()))
    print("equal")
"""


@pytest.mark.slow
def test_gradients_on_two_devices_equal_those_on_one():
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", TWO],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["equal"] * 3
