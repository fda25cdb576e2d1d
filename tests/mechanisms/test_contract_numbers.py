"""The contract: rounding errors in each precision, and costs as declared."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.inputs import shape_of
from attnlab.ops.mask import Full
from tests.mechanisms.contract import attend, causal, every, inputs, refusal

LIMITS = {"float32": 5e-6, "bfloat16": 1.5e-2, "float16": 2e-3}


@pytest.mark.usefixtures("x64")
@every
def test_errors_against_float64_stay_within_their_limits(name):
    mechanism = MECHANISMS[name]
    full = lambda q, k, v, extra: attend(mechanism, q, k, v, **extra)
    past = lambda q, k, v, extra: causal(mechanism, q, k, v, **extra)
    # If the mechanism is also causal, attention to all keys is tested in the least precise dtype only.
    runs = [(past, LIMITS)] if mechanism.traits.decodes else []
    if refusal(mechanism, Full()) is None:
        runs.append((full, ["bfloat16"] if runs else LIMITS))
    assert runs
    for run, dtypes in runs:
        for dtype in dtypes:
            rounded = inputs(mechanism, 256, dtype=dtype)
            exact = run(*jax.tree.map(lambda x: x.astype(np.float64), rounded))
            found = run(*rounded)
            assert found.dtype == dtype
            error = np.max(np.abs(found.astype(np.float64) - exact)) / np.max(np.abs(exact))
            assert error <= LIMITS[dtype], dtype


@every
def test_declared_flops_are_within_a_factor_of_two_of_the_compilers_count(name):
    mechanism = MECHANISMS[name]
    S, width = 64, 16
    T = 48 if refusal(mechanism, Full(), 48, S) is None else S
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((T, width), (S, width), (S, width))]
    constants = {n: x[0] for n, x in mechanism.heads(1).items()}
    learned = mechanism.initial(jax.random.key(0), width, width) | constants
    tokens = {n: jnp.zeros((S, *shape_of(s, width, width))) for n, s in mechanism.tokens.items()}
    tokens |= {n: jnp.zeros((T, *shape_of(s, width, width))) for n, s in mechanism.queries.items()}
    if refusal(mechanism, Full(), T, S) is None:
        call, declared = attend.lower(mechanism, *shapes, **learned, **tokens), mechanism.cost(T, S, width, width)
    else:
        # One block, which a loop over blocks repeats. Mamba loops over tokens.
        size = 1 if name == "mamba" else 64
        shapes = [jax.ShapeDtypeStruct((size, width), jnp.float32)] * 3
        tokens = {n: x[:size] for n, x in tokens.items()}
        run = jax.jit(lambda state, q, k, v: mechanism.extend(state, q, k, v, **learned, **tokens)[0])
        call = run.lower(mechanism.start(size, width, width, jnp.float32), *shapes)
        declared = mechanism.cost(size, size, width, width, size)
    counted = call.compile().cost_analysis()["flops"]
    assert 0.5 <= declared.flops / counted <= 2, (declared.flops, counted)


@every
def test_no_form_calls_lapack(name):
    """Two batched LAPACK kernels may wait for each other forever on a CPU (`attnlab/ops/positive_definite.py`)."""
    mechanism = MECHANISMS[name]
    arrays = inputs(mechanism, 32)
    both = lambda run: jax.grad(lambda q, k, v, extra: run(mechanism, q, k, v, **extra).sum(), argnums=(0, 1, 2, 3))
    runs = [causal] * mechanism.traits.decodes + [attend] * (refusal(mechanism, Full(), 32, 32) is None)
    assert runs
    for run in runs:
        assert "lapack" not in jax.jit(both(run)).lower(*arrays).as_text()
