"""`jax.nn.dot_product_attention`."""

from __future__ import annotations

from collections.abc import Mapping

import jax
from jaxtyping import Array

from attnlab.bench.foreign.comparison import ForeignFunction
from attnlab.bench.foreign.evaluation import evaluate_in_jax
from attnlab.bench.foreign.subjects import MechanismSubject, subject
from attnlab.mechanisms.window import Local

FLOAT32 = "the softmax is computed in float32 for float64 inputs; any input shows it"
Named = Mapping[str, Array]


def _function(
    ours: MechanismSubject, options: str = "", window: tuple[int, int] | None = None, dtype: str = "float32"
) -> ForeignFunction:
    """Returns the record of one way to call it. It takes values as wide as keys only."""

    def attend(named: Named, mask: Array | None = None) -> Array:
        return jax.nn.dot_product_attention(
            *(named[name] for name in "qkv"), mask=mask, is_causal=ours.causal, local_window_size=window
        )

    def packed(named: Named) -> Array:
        segment = named["segment"]
        return attend(named, (segment[:, :, None] == segment[:, None, :])[:, None])

    padded = lambda named: attend(named, named["keep"][:, None, None, :])
    forms = {"whole": attend, "packed": packed, "padded": padded}
    findings = dict.fromkeys(forms, FLOAT32) if dtype == "float64" else {}
    name = f"nn.dot_product_attention{options}"
    return ForeignFunction(ours, "jax", name, lambda: forms, evaluate_in_jax, dtype, findings)


_CAUSAL = subject("softmax", V=8)
FUNCTIONS = (
    _function(_CAUSAL, "(is_causal=True)"),
    _function(_CAUSAL, "(is_causal=True)", dtype="float64"),
    _function(subject("softmax", V=8, causal=False)),
    # A window of keys i − 9 … i + 4, which counts the query's own key on both sides in ours.
    _function(subject("window", Local(10, 5, block=None), V=8, causal=False), "(local_window_size=(9, 4))", (9, 4)),
)
