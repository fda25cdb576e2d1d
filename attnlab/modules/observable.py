"""Attention modules that can also return something about each call, for example the attention map."""

from __future__ import annotations

from flax import nnx
from jaxtyping import Array, PyTree

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.maps import Observer
from attnlab.ops.mask import Mask


class Observable(nnx.Module):
    """Base class of the modules that call a mechanism."""

    observer: Observer | None = None
    """What is returned about each call, or None. It is set on a copy of a model by `attnlab.analysis.with_maps`."""

    def observed(self, mechanism: Mechanism, q: Array, k: Array, mask: Mask, **given: PyTree) -> Array | None:
        """Returns what the observer makes of a call, or None without an observer."""
        return None if self.observer is None else self.observer(mechanism, q, k, mask, **given)
