"""A check that jax is configured for the precision of a model."""

from __future__ import annotations

from typing import Any

import jax


def check(model: Any) -> None:
    """Raise ValueError if a model's `dtype` has 64 bits and jax would silently use 32."""
    dtype = str(getattr(model, "dtype", ""))
    if dtype.endswith("64") and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise ValueError(f"model.dtype={dtype} needs 64-bit numbers: set JAX_ENABLE_X64=1")
