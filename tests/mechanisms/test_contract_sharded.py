"""The contract: gradients can be taken inside `jax.shard_map`, which checks over which devices each array varies."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from attnlab.mechanisms.causal import causal
from attnlab.ops.mask import Full
from tests.mechanisms.contract import SMALL, SORTED, every, inputs, per_token, refusal

T = 40  # several groups of chunks, and several blocks of queries and of keys


def placed(mechanism):
    """Returns a batch of one example for `T` tokens, and its specs: what is learned is the same on all devices."""
    q, k, v, extra = inputs(mechanism, T, dtype=np.float32)
    tokens = {name: x[None] for name, x in extra.items() if name in per_token(mechanism)}
    learned = {name: x for name, x in extra.items() if name not in tokens}
    return (q[None], k[None], v[None], tokens, learned), (P("data"), P("data"), P("data"), P("data"), P())


def gradient_shapes(f, arguments, specs):
    """Returns the shapes of the gradients of the sum of f over all examples, inside `jax.shard_map`."""
    mesh = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,))

    def total(q, k, v, tokens, learned):
        y = jax.vmap(lambda q, k, v, tokens: f(q, k, v, **tokens, **learned))(q, k, v, tokens)
        return jax.lax.psum((y**2).sum(), "data")

    back = jax.grad(total, argnums=tuple(range(len(arguments))))
    return jax.eval_shape(jax.shard_map(back, mesh=mesh, in_specs=specs, out_specs=specs), *arguments)


@every
@pytest.mark.parametrize("form", ["causal", pytest.param("by blocks", marks=pytest.mark.slow), "full"])
def test_gradients_inside_shard_map(name, form):
    mechanism = replace(SMALL[name], block=4) if name in SORTED else SMALL[name]
    if form == "full" and (why := refusal(mechanism, Full(), T, T)):
        pytest.skip(why)
    if form != "full" and not mechanism.traits.decodes:
        pytest.skip("has no causal form")
    call = {
        "causal": lambda *x, **extra: causal(mechanism, *x, **extra),
        "by blocks": lambda *x, **extra: causal(mechanism, *x, block=8, **extra),
        "full": lambda *x, **extra: mechanism.attend(*x, **extra),
    }[form]
    arguments, specs = placed(mechanism)
    found = gradient_shapes(call, arguments, specs)
    assert jax.tree.map(lambda x: x.shape, found) == jax.tree.map(lambda x: x.shape, arguments)
