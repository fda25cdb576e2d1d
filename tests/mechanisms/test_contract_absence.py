"""The contract: masked tokens, padding and other sequences have no effect."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.mechanisms.inputs import split
from attnlab.ops.mask import Full, KeyPadding, QueryPadding, Segments
from tests.mechanisms.contract import (
    BLOCKS,
    SMALL,
    N,
    V,
    attend,
    attend_back,
    by_itself,
    cut,
    every,
    honoured,
    inputs,
    near,
    packed,
    per_token,
    refusal,
    spoil,
    stateful,
)

pytestmark = pytest.mark.usefixtures("x64")
SHOWN = 6
bad = st.sampled_from([np.nan, np.inf, -np.inf])
some = st.permutations([True] * SHOWN + [False] * (N - SHOWN))
TARGET = np.random.default_rng(3).normal(size=(N, V))


def finite(tree):
    return all(np.isfinite(x).all() for x in jax.tree.leaves(tree))


@every
@settings(max_examples=10)
@given(keep=some | st.just([False] * N), bad=bad)
def test_masked_keys_affect_neither_outputs_nor_gradients(name, keep, bad):
    with jax.enable_x64(True):
        mechanism = SMALL[name]
        keep = np.array(keep)
        honoured(mechanism, KeyPadding(keep), 5, N)
        q, k, v, extra = inputs(mechanism, 5, N)
        i, j = np.arange(4, 9, dtype=np.int32), np.arange(N, dtype=np.int32)
        run = lambda k, v, extra, mask, j: attend_back(mechanism, TARGET[:5], q, k, v, extra, mask, i=i, j=j)
        dirty = {n: spoil(x, keep, bad) if n in mechanism.tokens else x for n, x in extra.items()}
        y, (dq, dk, dv, dextra) = run(spoil(k, keep, bad), spoil(v, keep, bad), dirty, KeyPadding(keep), j)
        assert finite((dq, dk, dv, dextra))
        if not keep.any():
            assert not np.any(y)
            return
        # The same call without those keys.
        few, back = run(k[keep], v[keep], cut(mechanism, extra, keep, slice(None)), Full(), j[keep])
        near(y, few)
        near((dq, dk[keep], dv[keep], cut(mechanism, dextra, keep, slice(None))), back)
        assert not np.any(dk[~keep])


@every
@settings(max_examples=10)
@given(keep=some, bad=bad)
def test_padding_of_queries_and_keys_alike_changes_nothing(name, keep, bad):
    with jax.enable_x64(True):
        mechanism = SMALL[name]
        keep = np.array(keep)
        mask = KeyPadding(keep) & QueryPadding(keep)
        honoured(mechanism, mask, N, N)
        q, k, v, extra = inputs(mechanism, N)
        dirty = {n: spoil(x, keep, bad) if n in per_token(mechanism) else x for n, x in extra.items()}
        y, back = attend_back(mechanism, TARGET, *(spoil(x, keep, bad) for x in (q, k, v)), dirty, mask)
        at = np.where(keep)[0].astype(np.int32)
        few, alone = attend_back(
            mechanism, TARGET[keep], q[keep], k[keep], v[keep], cut(mechanism, extra, keep), i=at, j=at
        )
        near(y[keep], few)
        assert not np.any(y[~keep])
        near((*(x[keep] for x in back[:3]), cut(mechanism, back[3], keep)), alone)
        assert finite(back)


@every
def test_a_query_without_keys_gives_zero_with_zero_gradient_even_if_it_is_nan(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, N)
    ids = np.where(np.arange(N) == 2, 5, 0).astype(np.int32)
    for mask in (Segments(ids, np.zeros_like(ids)), KeyPadding(np.ones(N, bool)) & QueryPadding(ids == 0)):
        if refusal(mechanism, mask, N, N) is None:
            y, back = attend_back(mechanism, TARGET, spoil(q, ids == 0), k, v, extra, mask)
            assert not np.any(y[2])
            assert not np.any(back[0][2])
            assert finite((y, back))


@stateful
@pytest.mark.parametrize("block", BLOCKS)
@settings(max_examples=8)
@given(keep=some | st.just([False] * N), bad=bad)
def test_padding_changes_neither_values_nor_gradients(name, block, keep, bad):
    with jax.enable_x64(True):
        mechanism = SMALL[name]
        keep = np.array(keep)
        y, back = packed(mechanism, TARGET, block=block, keep=keep, bad=bad)
        assert finite((y, back))
        assert not np.any(y[~keep])
        if not keep.any():
            return
        few, alone = by_itself(mechanism, TARGET, np.where(keep)[0])
        near(y[keep], few)
        near((*(x[keep] for x in back[:3]), cut(mechanism, back[3], keep)), alone)


# Three sequences of three tokens each, as kept tokens and segment ids. Ids rise, fall and recur. Padding is absent,
# around, inside, or has the id of another sequence.
PACKED = {
    "packed": ("111111111", "444111444"),
    "padded": ("011101110", "922295550"),
    "scattered": ("101010111", "292020555"),
    "of another": ("110111001", "331311331"),
}


@stateful
@pytest.mark.parametrize("block", BLOCKS)
def test_packed_sequences_are_independent(name, block):
    mechanism = SMALL[name]
    for kept, ids in PACKED.values():
        keep, segment = np.array([c == "1" for c in kept]), np.array([int(c) for c in ids])
        y, back = packed(mechanism, TARGET, block=block, keep=keep, segment=segment)
        rows, learned = np.where(keep)[0], []
        for run in np.split(rows, len(rows) // 3):
            few, alone = by_itself(mechanism, TARGET, run)
            near(y[run], few)
            near([x[run] for x in back[:3]], alone[:3])
            shared, own = split(alone[3], {n for n in alone[3] if n not in per_token(mechanism)})
            near({n: back[3][n][run] for n in own}, own)
            learned.append(shared)
        near({n: back[3][n] for n in shared}, jax.tree.map(lambda *x: sum(x), *learned))
        assert not np.any(y[~keep])


@every
def test_no_key_at_all_is_no_error(name):
    mechanism = SMALL[name]
    honoured(mechanism, KeyPadding(np.zeros(6, bool)), 6, 6)
    q, k, v, extra = inputs(mechanism, 6)
    assert not np.any(attend(mechanism, q, k, v, KeyPadding(np.zeros(6, bool)), **extra))
