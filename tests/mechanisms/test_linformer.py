import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Linformer
from attnlab.ops.mask import Causal, KeyPadding
from tests.mechanisms.contract import attend, inputs, near, weights

pytestmark = pytest.mark.usefixtures("x64")
SMALL = Linformer(rank=3, length=9)


def written_out(q, k, v, project_k, project_v, keep, j):
    """Computes equation 7 with loops over single numbers."""
    q, k, v, e, f = (np.asarray(x) for x in (q, k, v, project_k, project_v))
    rank, S = e.shape[0], len(k)
    keys, values = np.zeros((rank, k.shape[1])), np.zeros((rank, v.shape[1]))
    for r in range(rank):
        for s in range(S):
            if keep[s]:
                keys[r] += e[r, j[s]] * k[s]
                values[r] += f[r, j[s]] * v[s]
    y = np.zeros((len(q), v.shape[1]))
    for t in range(len(q)):
        share = np.exp([q[t] @ keys[r] / np.sqrt(q.shape[1]) for r in range(rank)])
        y[t] = sum(share[r] / share.sum() * values[r] for r in range(rank))
    return y


def test_it_is_equation_7():
    q, k, v, learned = inputs(SMALL, 5, 7)
    near(attend(SMALL, q, k, v, **learned), written_out(q, k, v, **learned, keep=[True] * 7, j=range(7)))
    keep, j = np.array([1, 0, 1, 1, 0, 1, 1], bool), np.array([8, 1, 0, 2, 5, 3, 4])
    y = attend(SMALL, q, k, v, KeyPadding(jnp.asarray(keep[np.argsort(j)])), j=jnp.asarray(j), **learned)
    assert y.shape == (5, 6)
    kept_at = np.zeros(9, bool)
    kept_at[j] = keep
    y = attend(SMALL, q, k, v, KeyPadding(jnp.asarray(kept_at)), j=jnp.asarray(j), **learned)
    near(y, written_out(q, k, v, **learned, keep=keep, j=j))


def test_as_many_projected_keys_as_keys_can_be_softmax():
    q, k, v, _ = inputs(SMALL, 5)
    same = {"project_k": jnp.eye(9)[:5], "project_v": jnp.eye(9)[:5]}
    scores = np.exp(np.asarray(q @ k.T) / 2)
    near(attend(Linformer(rank=5, length=9), q, k, v, **same), scores / scores.sum(axis=1, keepdims=True) @ v)


def test_its_map_has_no_more_rank_than_projected_keys():
    q, k, _, learned = inputs(SMALL, 9)
    assert np.linalg.matrix_rank(weights(SMALL, q, k, **learned)) == 3


def test_an_output_does_not_depend_on_other_queries():
    q, k, v, learned = inputs(SMALL, 6)
    y = attend(SMALL, q, k, v, **learned)
    near(attend(SMALL, q[2:3], k, v, **learned), y[2:3])


def test_it_has_a_fixed_length_and_can_be_resized():
    q, k, v, learned = inputs(SMALL, 4, 10)
    with pytest.raises(ValueError, match=r"supports 9 keys, got 10; use with_length\(10\)"):
        SMALL.attend(q, k, v, **learned)
    with pytest.raises(ValueError, match="supports positions 0 … 8, got a key at position 9"):
        SMALL.attend(q, k[:2], v[:2], j=jnp.array([0, 9]), **learned)
    with pytest.raises(ValueError, match="supports positions 0 … 8, got a key at position -1"):
        SMALL.attend(q, k[:2], v[:2], j=np.array([-1, 2]), **learned)
    beyond = attend(SMALL, q, k[:2], v[:2], j=jnp.array([0, 9]), **learned)
    assert np.isnan(beyond).all()
    longer = SMALL.with_length(10)
    assert longer == Linformer(rank=3, length=10)
    assert longer.initial(jax.random.key(0), 4, 6)["project_k"].shape == (3, 10)
    assert np.isfinite(attend(longer, q, k, v, **inputs(longer, 4)[3])).all()


def test_padding_may_exceed_the_length():
    q, k, v, learned = inputs(SMALL, 4, 3)
    keep, j = jnp.arange(12) < 9, jnp.array([0, 11, 2])
    y = attend(SMALL, q, k, v, KeyPadding(keep), j=j, **learned)
    near(y, attend(SMALL, q, k[::2], v[::2], j=j[::2], **learned))


def test_unit_keys_are_projected_to_unit_variance():
    big = Linformer(rank=64, length=512)
    _, k, _, learned = inputs(big, 512)
    assert float(jnp.var(learned["project_k"] @ k)) == pytest.approx(1, rel=0.2)
    assert not np.allclose(learned["project_k"], learned["project_v"])


def test_fields_and_masks_that_cannot_work_are_refused_by_name():
    with pytest.raises(ValueError, match="rank=0 must be at least 1"):
        Linformer(rank=0)
    with pytest.raises(ValueError, match="length=0 must be at least 1"):
        Linformer(length=0)
    q, k, v, learned = inputs(SMALL, 4)
    with pytest.raises(NotImplementedError, match=r"Linformer.* does not support Causal"):
        SMALL.attend(q, k, v, Causal(), **learned)
