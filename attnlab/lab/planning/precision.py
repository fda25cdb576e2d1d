"""A check that jax is configured for the precision of a model."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import jax

from attnlab.lab.study.experiment import ModelConfig


@runtime_checkable
class HasDtype(Protocol):
    """A model configuration with the data type of the computation."""

    @property
    def dtype(self) -> str:
        """The name of the data type, for example "float32"."""
        ...


def dtype_of(model: ModelConfig) -> str:
    """Return the data type of a model's computation: float32 for a model that has no choice."""
    return model.dtype if isinstance(model, HasDtype) else "float32"


def check(model: ModelConfig) -> None:
    """Raise ValueError if a model's `dtype` has 64 bits and jax would silently use 32."""
    dtype = dtype_of(model)
    if dtype.endswith("64") and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise ValueError(f"model.dtype={dtype} needs 64-bit numbers: set JAX_ENABLE_X64=1")
