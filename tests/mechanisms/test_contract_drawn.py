"""The contract for values, padding, segments, masks and blocks drawn by hypothesis, with one shape."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.ops.mask import Causal, Edges, KeyPadding, Segments
from tests.mechanisms.contract import SMALL, N, attend, causal, every, honoured, inputs, near, stateful

pytestmark = pytest.mark.usefixtures("x64")
flags = st.lists(st.booleans(), min_size=N, max_size=N).map(np.array)
segments = st.lists(st.integers(0, 2), min_size=N, max_size=N).map(lambda ids: np.array(sorted(ids), np.int32))
values = st.tuples(st.integers(0, 2**16), st.sampled_from([0.0, 0.3, 1.0, 3.0]))


def drawn(mechanism, values):
    """Returns inputs for a seed, with q and k multiplied by a size."""
    seed, size = values
    q, k, v, extra = inputs(mechanism, N, seed=seed)
    return size * q, size * k, v, extra


@stateful
@settings(max_examples=12)
@given(values=values, keep=flags, segment=segments, block=st.sampled_from([1, 4]))
def test_whatever_the_values_padding_and_segments_blocks_agree(name, values, keep, segment, block):
    with jax.enable_x64(True):
        q, k, v, extra = drawn(SMALL[name], values)
        whole = causal(SMALL[name], q, k, v, keep=keep, segment=segment, **extra)
        near(causal(SMALL[name], q, k, v, block=block, keep=keep, segment=segment, **extra), whole)
        assert not np.any(whole[~keep])


@every
@settings(max_examples=12)
@given(values=values, keep=flags, ids=segments, edges=st.integers(0, 2**16))
def test_equivalent_masks_give_equal_outputs(name, values, keep, ids, edges):
    with jax.enable_x64(True):
        adjacency = np.random.default_rng(edges).random((N, N)) < 0.3
        mask = (Causal() | KeyPadding(keep)) & Segments(ids, ids) & ~Edges(adjacency)
        honoured(SMALL[name], mask, N, N)
        q, k, v, extra = drawn(SMALL[name], values)
        at = np.arange(N)
        allowed = ((at[None] <= at[:, None]) | keep[None]) & (ids[:, None] == ids[None]) & ~adjacency
        y = attend(SMALL[name], q, k, v, mask, **extra)
        near(y, attend(SMALL[name], q, k, v, Edges(allowed), **extra))
        assert not np.any(y[~allowed.any(axis=1)])
