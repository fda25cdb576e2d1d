"""Checks a feature map of fewer components than its input has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.feature import Cosformer, Dpfp, EluPlusOne, Favor, Hedgehog, Narrow, Taylor

I = np.arange(5, dtype=np.int32)


@pytest.mark.parametrize("feature", [EluPlusOne(), Dpfp(), Taylor(), Hedgehog(), Favor(m=3), Cosformer()], ids=str)
def test_it_applies_the_map_to_the_first_components(feature):
    x = jax.random.normal(jax.random.key(0), (5, 8))
    narrow = Narrow(feature, 3)
    learned = narrow.initial(jax.random.key(1), 8)
    for ours, theirs in ((narrow.query, feature.query), (narrow.key, feature.key)):
        for a, b in zip(ours(x, I, **learned), theirs(x[:, :3], I, **learned), strict=True):
            assert (a is None) == (b is None)
            np.testing.assert_array_equal(0 if a is None else a, 0 if b is None else b)
    assert narrow.dim(8) == feature.dim(3) == narrow.query(x, I, **learned).rows.shape[1]
    assert narrow.scaled == feature.scaled
    sizes = {name: tuple(3 if n == "K" else n for n in shape) for name, shape in feature.learned.items()}
    assert narrow.learned == sizes
    assert {name: value.shape for name, value in learned.items()} == sizes


def test_other_components_have_no_gradient():
    total = lambda x: jnp.sum(Narrow(EluPlusOne(), 2).query(x, I).rows)
    gradient = jax.grad(total)(jnp.ones((5, 4)))
    np.testing.assert_array_equal(gradient[:, 2:], 0)
    assert (gradient[:, :2] != 0).all()


def test_its_length_is_that_of_the_map():
    narrow = Narrow(Cosformer(length=4), 2)
    with pytest.raises(ValueError, match="supports positions 0 … 3, got 4"):
        narrow.check_length(5)
    assert narrow.with_length(9) == Narrow(Cosformer(length=9), 2)


def test_widths_are_checked():
    with pytest.raises(ValueError, match="width=0 must be at least 1"):
        Narrow(width=0)
    with pytest.raises(ValueError, match="width=5 must be at most 4, the number of components"):
        Narrow(width=5).dim(4)
