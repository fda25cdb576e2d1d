"""Checks of single fields of models' configurations."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

DTYPES = ("float32", "bfloat16", "float16", "float64")

# Upper limits for layers and widths. A larger value is more likely a typing error than an intended size.
DEEPEST, WIDEST = 1024, 2**20


def check_sizes(**sizes: int | None) -> None:
    """Check that sizes are within the supported range.

    Args:
        **sizes: Sizes by the name of their field. A size that is None passes.

    Raises:
        ValueError: A field is below 1, above `DEEPEST` (for `layers`) or above `WIDEST` (for all others).
    """
    for field, value in sizes.items():
        most = DEEPEST if field == "layers" else WIDEST
        if value is not None and not 1 <= value <= most:
            raise ValueError(f"model.{field}={value} must be at least 1, and at most {most}")


def check_dropout(rate: float) -> None:
    """Raise ValueError if a dropout probability is not at least 0 and below 1."""
    if not 0 <= rate < 1:
        raise ValueError(f"model.dropout={rate} must be at least 0 and below 1")


def check_norm_eps(epsilon: float) -> None:
    """Raise ValueError if the ε of a norm is below 1e-37 or not below 1.

    A smaller ε underflows in float32. A larger one dominates the variance.
    """
    if not 1e-37 <= epsilon < 1:
        raise ValueError(f"model.norm_eps={epsilon} must be at least 1e-37 and below 1")


def check_no_embeddings(scale_embeddings: bool) -> None:
    """Raise ValueError if `scale_embeddings` is False, for data that have no embeddings."""
    if not scale_embeddings:
        raise ValueError(
            "model.scale_embeddings=False is not supported: this task's data are not symbols and have no embeddings"
        )


def check_names(**fields: tuple[str | None, Collection[str]]) -> None:
    """Check that fields have one of their known values.

    Args:
        **fields: The value of each field and its known values, by field name.

    Raises:
        ValueError: A field has another value. The message names the field, all known values and the nearest one.
    """
    for field, (value, names) in fields.items():
        if value not in names:
            near = get_close_matches(str(value).lower(), names, n=1)
            hint = f"; nearest: {near[0]!r}" if near else ""
            raise ValueError(f"model.{field}={value!r} must be one of {', '.join(names)}{hint}")
