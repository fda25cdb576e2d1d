"""The denominators of a trained model's linear attention: each query's sum of weights before the division."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Array, Float, PyTree

from attnlab.analysis.maps import MappedModel, observations
from attnlab.mechanisms import Linear, Mechanism, ShortConvolution, weights
from attnlab.models.interfaces import AttentionConfig
from attnlab.ops.feature import RotatedFeatures
from attnlab.ops.mask import Mask
from attnlab.pattern import Pattern


def undivided_weights(mechanism: Mechanism, q: Array, k: Array, mask: Mask, **given: PyTree) -> Float[Array, "T S"]:
    """Returns the weights φ(q)·ψ(k) of a call before they are divided by their sum.

    If the mechanism has no denominator, this is the attention map.

    Args:
      mechanism: the mechanism.
      q: queries [T K].
      k: keys [S K].
      mask: which query may see which key.
      **given: further arguments of `attnlab.mechanisms.weights`, for example extra inputs by name.

    Returns:
      Weights [T S].
    """
    return weights(without_denominator(mechanism), q, k, mask, **given)


def without_denominator(mechanism: Mechanism) -> Mechanism:
    """Returns the mechanism without its denominator, or the mechanism itself if it has none."""
    if not has_denominator(mechanism):
        return mechanism
    if isinstance(mechanism, ShortConvolution):
        return replace(mechanism, mechanism=without_denominator(mechanism.mechanism))
    assert isinstance(mechanism, Linear)  # by `has_denominator`
    # Features are rotated only in the numerator, so the denominator is that of the features without rotation.
    feature = mechanism.feature.feature if isinstance(mechanism.feature, RotatedFeatures) else mechanism.feature
    return replace(mechanism, feature=feature, normalise=False)


def has_denominator(mechanism: Mechanism | Pattern | None) -> bool:
    """Returns whether a mechanism divides by a sum of weights, which may come close to zero.

    It is False for features with a scale, whose sum is known only up to a factor, and for a pattern of mechanisms.
    """
    if isinstance(mechanism, ShortConvolution):
        return has_denominator(mechanism.mechanism)
    return isinstance(mechanism, Linear) and mechanism.normalise and not mechanism.feature.scaled


def denominators(
    config: AttentionConfig, model: MappedModel, *inputs: Array | np.ndarray | None
) -> dict[str, Float[Array, "L H T"]]:
    """Returns Σ_j φ(q_t)·ψ(k_j) of every query for one example.

    Args:
      config: the model's config.
      model: a model made by `config.create(key, shape)`.
      *inputs: inputs of the model, without a batch axis.

    Returns:
      {name of the attention: sums [L H T]}, for each attention with a denominator.
    """
    names = [name for name, mechanism in config.attentions.items() if has_denominator(mechanism)]
    if not names:
        return {}
    weights_by_name = observations(undivided_weights, model, *inputs)
    return {name: weights_by_name[name].sum(axis=-1) for name in names if weights_by_name.get(name) is not None}
