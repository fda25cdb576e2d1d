"""Mechanisms of ours as functions of named arrays, in the layout that most libraries have: [B T H …]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import jax
import numpy as np
from jaxtyping import Array

from attnlab.bench.peer_parity.evaluation import Arrays
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.causal import causal
from attnlab.mechanisms.inputs import shape_of
from attnlab.ops.mask import Full, KeyPadding, Mask, QueryPadding, Segments

EXTREME = 20.0
"""What extra inputs are multiplied by, so that some gates are shut and others are open."""


@dataclass(frozen=True)
class MechanismSubject:
    """A mechanism as a function of named arrays.

    `q` [B T H K], `k` [B T H K] and `v` [B T H V], the extra inputs per token [B T H …], and the learned arrays and
    constants of each head [H …].
    """

    name: str
    """The name of the mechanism in `MECHANISMS`."""
    mechanism: Mechanism
    """The mechanism, which may have other fields than the one in `MECHANISMS`."""
    causal: bool = True
    """Whether queries see earlier keys only."""
    B: int = 2
    """Number of examples."""
    T: int = 70
    """Number of tokens."""
    H: int = 2
    """Number of heads."""
    K: int = 8
    """Width of queries and keys."""
    V: int = 12
    """Width of values."""
    offsets: Mapping[str, float] = field(default_factory=dict)
    """Numbers that are added to the initial values of learned arrays, by name."""
    reuse: bool = False
    """Whether the third segment of a packed row has the id of the first one. It stays a segment of its own."""
    gates: tuple[str, ...] | None = None
    """The extra inputs that the form "extreme" multiplies. None: all."""

    def inputs(self, form: str) -> Arrays:
        """Return random inputs. Learned arrays are near their initial values."""
        rng = np.random.default_rng(0)
        normal = lambda *shape: rng.standard_normal(shape)
        arrays = {name: normal(self.B, self.T, self.H, *shape) for name, shape in self._shapes.items()}
        of_heads = [self.mechanism.initial(key, self.K, self.V) for key in jax.random.split(jax.random.key(0), self.H)]
        for name in self.mechanism.learned:
            x = np.stack([np.asarray(each[name], np.float64) for each in of_heads])
            arrays[name] = x + 0.1 * normal(*x.shape) + self.offsets.get(name, 0)
        arrays |= {name: np.asarray(x, np.float64) for name, x in self.mechanism.heads(self.H).items()}
        if form == "extreme":
            arrays |= {name: EXTREME * arrays[name] for name in self._gates}
        return arrays | self._places(form)

    def forms(self) -> dict[str, Callable]:
        """Return functions from named arrays to the outputs [B T H V], by form."""
        once = partial(self._lifted, self.mechanism.causal if self.causal else self._attend)
        found = dict.fromkeys(("whole", "packed", "padded", *(["extreme"] if self._gates else [])), once)
        return found | (
            {"steps": partial(self._lifted, partial(causal, self.mechanism, block=1))} if self.causal else {}
        )

    @property
    def _gates(self) -> tuple[str, ...]:
        """The extra inputs that the form "extreme" multiplies."""
        return tuple(self._extra) if self.gates is None else self.gates

    @property
    def _extra(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the extra inputs of one token and head, by name."""
        per_token = {**self.mechanism.tokens, **self.mechanism.queries}
        return {name: tuple(shape_of(shape, self.K, self.V)) for name, shape in sorted(per_token.items())}

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of one token and head, by name."""
        return {"q": (self.K,), "k": (self.K,), "v": (self.V,)} | self._extra

    def _places(self, form: str) -> Arrays:
        """Return the segments of packed rows, or what is no padding: all tokens of one row, and part of the other."""
        places = np.arange(self.T, dtype=np.int32)[None]
        thirds = self.T // 3 + np.arange(self.B)[:, None]
        if form == "packed":
            third = (places >= 2 * thirds).astype(np.int32)
            return {"segment": (places >= thirds).astype(np.int32) + (-third if self.reuse else third)}
        if form == "padded":
            return {"keep": places >= thirds * (np.arange(self.B)[:, None] > 0)}
        return {}

    def _lifted(self, run: Callable, arrays: dict[str, Array]) -> Array:
        """Return the outputs for all examples and heads."""
        of_tokens = {name: arrays[name] for name in self._shapes}
        of_rows = {name: arrays[name] for name in ("segment", "keep") if name in arrays}
        of_heads = {name: x for name, x in arrays.items() if name not in of_tokens and name not in of_rows}
        one = lambda tokens, rows, heads: run(**tokens, **rows, **heads)
        heads = jax.vmap(one, in_axes=(1, None, 0), out_axes=1)
        return jax.vmap(heads, in_axes=(0, 0, None))(of_tokens, of_rows, of_heads)

    def _attend(self, q: Array, k: Array, v: Array, segment=None, keep=None, **extra: Array) -> Array:
        """Attend to all tokens, earlier and later."""
        mask: Mask = Full()
        if segment is not None:
            mask = mask & Segments(segment, segment)
        if keep is not None:
            mask = mask & KeyPadding(keep) & QueryPadding(keep)
        return self.mechanism.attend(q, k, v, mask, **extra)


def subject(name: str, mechanism: Mechanism | None = None, **options) -> MechanismSubject:
    """Return a mechanism as a function of named arrays.

    Args:
        name: Its name in `MECHANISMS`.
        mechanism: The mechanism with other fields. Default: the one in `MECHANISMS`.
        **options: Fields of `MechanismSubject`.
    """
    return MechanismSubject(name, MECHANISMS[name] if mechanism is None else mechanism, **options)


MLSTM = subject("mlstm", offsets={"write_shift": 10}, gates=("forget",))
"""The input gates of mLSTM start at e^−10, which would keep every denominator at 1.

They are exponential, so that extreme ones would only show how float32 rounds an exponent.
"""
