"""Checks that norms refuse inputs of another shape. Their formulas are tested with the operations and the layers."""

import jax.numpy as jnp
import pytest

from attnlab.modules.norm import GroupedHeadNorm, LayerNorm, RMSNorm


@pytest.mark.parametrize(
    ("norm", "shape"),
    [
        (LayerNorm(4), (3, 1)),
        (RMSNorm(4), (3, 1)),
        (RMSNorm(4), (3, 2, 1)),
        (RMSNorm(1), (3, 4)),
        (GroupedHeadNorm(2, 4), (3, 1, 4)),
        (GroupedHeadNorm(2, 4), (3, 2, 1)),
    ],
)
def test_inputs_that_would_be_repeated_are_refused(norm, shape):
    with pytest.raises(ValueError, match=r"x has shape \(3, .*\), expected \(.*\) as its last axes"):
        norm(jnp.ones(shape))
