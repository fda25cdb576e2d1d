"""The denominators of a trained model's linear attention: what each query's weights sum to before they are divided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Float

from attnlab.analysis.maps import watched
from attnlab.mechanisms import Linear, Mechanism, ShortConvolution, Watched
from attnlab.ops.feature import RotatedFeatures


@dataclass(frozen=True)
class WithoutDenominator(Watched):
    """The mechanism whose weights are φ(q)·ψ(k), not divided by their sum; itself, unless it `has_denominator`."""

    def look(self, q, k, *given, **named):
        """The weights [T S] of the call."""
        return Watched(without_denominator(self.mechanism)).look(q, k, *given, **named)


def without_denominator(mechanism: Any) -> Any:
    """The same without its denominator, if it has one."""
    if not has_denominator(mechanism):
        return mechanism
    if isinstance(mechanism, ShortConvolution):
        return replace(mechanism, mechanism=without_denominator(mechanism.mechanism))
    # Features are turned for the numerator alone.
    feature = mechanism.feature.feature if isinstance(mechanism.feature, RotatedFeatures) else mechanism.feature
    return replace(mechanism, feature=feature, normalise=False)


def has_denominator(mechanism: Mechanism | None) -> bool:
    """Whether its weights are divided by a sum, which may come near zero; of one known up to a factor none is shown."""
    if isinstance(mechanism, ShortConvolution):
        return has_denominator(mechanism.mechanism)
    return isinstance(mechanism, Linear) and mechanism.normalise and not mechanism.feature.scaled


def totals(config: Any, model: Any, shape: Any, *inputs: Any) -> dict[str, Float[Array, "L H T"]]:
    """Σ_j φ(q_t)·ψ(k_j) of every query in one example, by the name of each attention that divides by it."""
    names = [name for name, mechanism in config.attentions.items() if has_denominator(mechanism)]
    return _look(tuple(names), watched(config, model, shape, WithoutDenominator), *inputs) if names else {}


@partial(jax.jit, static_argnums=0)
def _look(names: tuple[str, ...], model: Any, *inputs: Array) -> dict[str, Array]:
    seen = model.look(*inputs)[1]
    return {name: seen[name].sum(axis=-1) for name in names if seen.get(name) is not None}
