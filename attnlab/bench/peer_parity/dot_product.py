"""`dot_product_attention` of jax.nn and of tokamax, which have the same arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

import jax
from jaxtyping import Array

from attnlab.bench.peer_parity.comparison import KnownDifference, PeerFunction
from attnlab.bench.peer_parity.evaluation import evaluate_in_jax
from attnlab.bench.peer_parity.subjects import MechanismSubject, subject
from attnlab.mechanisms.window import Local

FLOAT32 = KnownDifference("the softmax is computed in float32 for float64 inputs; any input shows it", 1e-6)
Named = Mapping[str, Array]


def _function(
    ours: MechanismSubject,
    package: str,
    options: str,
    implementation: str | None = None,
    window: tuple[int, int] | None = None,
    dtype: str = "float32",
) -> PeerFunction:
    """Return the record of one way to call it.

    Args:
        ours: The mechanism.
        package: "jax" or "tokamax".
        options: The arguments, as they are shown.
        implementation: How it is computed there.
        window: The numbers of keys before and after the query that it sees, or None.
        dtype: The dtype of the inputs.
    """
    name = "nn.dot_product_attention" if package == "jax" else "dot_product_attention"

    def attend(named: Named, mask: Array | None = None) -> Array:
        given = {"is_causal": ours.causal, "local_window_size": window, "implementation": implementation}
        library = jax.nn if package == "jax" else import_module("tokamax")
        return library.dot_product_attention(named["q"], named["k"], named["v"], mask=mask, **given)

    def packed(named: Named) -> Array:
        segment = named["segment"]
        return attend(named, (segment[:, :, None] == segment[:, None, :])[:, None])

    forms = {"whole": attend, "packed": packed, "padded": lambda named: attend(named, named["keep"][:, None, None, :])}
    known_differences = dict.fromkeys(forms, FLOAT32) if dtype == "float64" else {}
    return PeerFunction(ours, package, f"{name}({options})", lambda: forms, evaluate_in_jax, dtype, known_differences)


def _functions() -> Iterator[PeerFunction]:
    """Yield all records. In jax.nn, values are as wide as keys."""
    causal, full = subject("softmax", V=8), subject("softmax", V=8, causal=False)
    # A window of keys i − 9 … i + 4, which counts the query's own key on both sides in ours.
    window = subject("window", Local(10, 5, block=None), V=8, causal=False)
    yield _function(causal, "jax", "is_causal=True")
    yield _function(causal, "jax", "is_causal=True, float64", dtype="float64")
    yield _function(full, "jax", "")
    yield _function(window, "jax", "local_window_size=(9, 4)", window=(9, 4))
    for implementation in ("xla", "xla_chunked"):
        shown = f'implementation="{implementation}"'
        yield _function(causal, "tokamax", f"is_causal=True, {shown}", implementation)
        yield _function(full, "tokamax", shown, implementation)
        yield _function(window, "tokamax", f"local_window_size=(9, 4), {shown}", implementation, (9, 4))


FUNCTIONS = tuple(_functions())
