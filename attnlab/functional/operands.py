"""The arrays of a call with their axes, and the lift of a function of one head to all heads and examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from attnlab.mechanisms import MECHANISMS, Mechanism
from attnlab.mechanisms.inputs import shape_of
from attnlab.mechanisms.query_heads import query_head_axes
from attnlab.ops.counts import check_counts
from attnlab.registry import pick

# Axes of an array for three levels of `jax.vmap`: examples, key heads, and query heads of one key head.
Axes = tuple[int | None, int | None, int | None]
PER_QUERY, PER_KEY, PER_KEY_HEAD, PER_QUERY_HEAD = (0, 1, 1), (0, 1, None), (None, 0, None), (None, 0, 0)
LAYOUT = "q [B T H K], k [B S G K], v [B S G V], or all without B"


@dataclass(frozen=True)
class Sizes:
    """Sizes that all calls for one sequence share."""

    batch: int | None
    """Number of examples B. None: one example, without that axis."""
    heads: int
    """Number of query heads H."""
    key_heads: int
    """Number of key heads G. It divides H."""
    K: int
    """Width of queries and keys."""
    V: int
    """Width of values."""

    def __post_init__(self):
        check_counts(heads=self.heads, width=self.K, value_width=self.V)
        if self.key_heads < 1 or self.heads % self.key_heads:
            raise ValueError(f"key_heads={self.key_heads} must divide heads={self.heads}")

    def __str__(self):
        lead = "" if self.batch is None else f"{self.batch} "
        heads = f"[{lead}T {self.heads} {self.K}]", f"[{lead}T {self.key_heads} {self.K}]"
        return f"q {heads[0]}, k {heads[1]} and v [{lead}T {self.key_heads} {self.V}]"

    @property
    def lead(self) -> tuple[int, ...]:
        """The axis of examples, if there is one."""
        return () if self.batch is None else (self.batch,)

    @property
    def group(self) -> tuple[int, ...]:
        """The axes of heads: key heads, and the query heads of each if there are several."""
        several = self.heads > self.key_heads
        return (self.key_heads, self.heads // self.key_heads) if several else (self.key_heads,)


class Operands:
    """The arrays of a call by name, with their axes of examples and heads.

    Args:
        mechanism: the mechanism.
        q: queries [B T H K].
        k: keys [B S G K].
        v: values [B S G V].
        extra: the mechanism's extra inputs by name. Constants of heads may be left out.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if an extra input is missing or unknown, or an array does not hold floats.
    """

    def __init__(self, mechanism: Mechanism, q: ArrayLike, k: ArrayLike, v: ArrayLike, extra: dict[str, ArrayLike]):
        known = {*mechanism.tokens, *mechanism.queries, *mechanism.learned, *mechanism.heads(1)}
        if unknown := extra.keys() - known:
            expected = ", ".join(sorted(known)) or "none"
            raise TypeError(f"{mechanism} got unexpected inputs {', '.join(sorted(unknown))}; expected: {expected}")
        given = {name: jnp.asarray(x) for name, x in {"q": q, "k": k, "v": v, **extra}.items()}
        for name, x in given.items():
            if not jnp.issubdtype(x.dtype, jnp.floating):
                raise TypeError(f"{name} must be an array of floats, got {x.dtype}")
        shapes = [given[name].shape for name in "qkv"]
        if not all(len(shape) == len(shapes[0]) in (3, 4) for shape in shapes):
            raise ValueError(f"expected {LAYOUT}, got shapes {', '.join(map(str, shapes))}")
        (*lead, T, H, K), (*_, S, G, V) = shapes[0], shapes[2]
        self.T, self.S, self.sizes = T, S, Sizes(lead[0] if lead else None, H, G, K, V)
        self.arrays: dict[str, Array] = {}
        self.axes: dict[str, Axes] = {}
        constants = mechanism.heads(G)
        given = constants | given
        needed = {
            name: (axes, (*before, *shape_of(shape, K, V)))
            for axes, before, named in (
                (PER_QUERY, (*lead, T, H), {"q": ("K",), **mechanism.queries}),
                (PER_KEY, (*lead, S, G), {"k": ("K",), "v": ("V",), **mechanism.tokens}),
                (PER_KEY_HEAD, (G,), mechanism.learned | dict.fromkeys(constants, ())),
            )
            for name, shape in named.items()
        }
        self.extra = sorted(needed.keys() - {"q", "k", "v"})
        if missing := needed.keys() - given.keys():
            shown = ", ".join(f"{name} {needed[name][1]}" for name in sorted(missing))
            draw = f"jax.vmap(lambda key: mechanism.initial(key, {K}, {V}))(jax.random.split(key, {G}))"
            hint = f"; initial values: {draw}" if missing & mechanism.learned.keys() else ""
            raise TypeError(f"{mechanism} is missing inputs {shown}{hint}")
        for name, (axes, shape) in needed.items():
            if axes == PER_KEY_HEAD and given[name].shape == (H, *shape[1:]):
                axes, shape = PER_QUERY_HEAD, (H, *shape[1:])
            if given[name].shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {given[name].shape}")
            self._add(name, given[name], axes)

    def add_rows(self, name: str, x: ArrayLike | None, rows: int, argument: str = "") -> None:
        """Adds an array [B rows] with one entry per token, unless it is None.

        Errors name the caller's `argument`, if it is another than `name`.
        """
        if x is None:
            return
        x, shape = jnp.asarray(x), (*self.sizes.lead, rows)
        if x.shape != shape:
            raise ValueError(f"{argument or name} must have shape {shape}, got {x.shape}")
        self._add(name, x, (0, None, None))

    def add_segments(self, name: str, x: ArrayLike | None, rows: int, argument: str = "segment_ids") -> None:
        """Adds integers [B rows], one per token, unless they are None. Errors name the caller's `argument`."""
        if x is not None and not jnp.issubdtype((x := jnp.asarray(x)).dtype, jnp.integer):
            raise TypeError(f"{argument} must be an array of integers, got {x.dtype}")
        self.add_rows(name, x, rows, argument)

    def add_pairs(self, name: str, x: Array) -> None:
        """Adds an array [T S], [B T S] or [B H T S], where B and H may be 1."""
        pair, most = (self.T, self.S), (*self.sizes.lead, self.sizes.heads)
        before = x.shape[:-2]
        shapes = [(*most[:n], *pair) for n in range(len(most) + 1)]
        allowed = x.shape[-2:] == pair and len(before) <= len(most)
        if not allowed or any(n not in (1, size) for n, size in zip(before, most, strict=False)):
            raise ValueError(f"{name} must have one of the shapes {', '.join(map(str, shapes))}, got {x.shape}")
        full = before + (1,) * (len(most) - len(before))
        example, head = (None if n == 1 else 0 for n in (1, *full)[-2:])
        self._add(name, x.reshape(*(n for n in full if n > 1), *pair), (example, head, head))

    def run(self, head: Callable[[dict[str, Array], PyTree], tuple[Array, PyTree]], state: PyTree = None):
        """Calls a function of one example and one head for all of them.

        Args:
            head: function (arrays by name, state) -> (output [T V], state).
            state: state with leading axes of examples and key heads, or None.

        Returns:
            Output [B T H V], and the new state.
        """
        shared, sizes = query_head_axes(state), self.sizes
        at = lambda level: {name: axes[level] for name, axes in self.axes.items()}
        if sizes.heads > sizes.key_heads:
            head = jax.vmap(head, in_axes=(at(2), shared), out_axes=(1, shared))
        head = jax.vmap(head, in_axes=(at(1), 0), out_axes=(1, 0))
        if sizes.batch is not None:
            head = jax.vmap(head, in_axes=(at(0), 0))
        y, state = head(self.arrays, state)
        return y.reshape(*sizes.lead, self.T, sizes.heads, y.shape[-1]), state

    def _add(self, name: str, x: Array, axes: Axes) -> None:
        """Adds an array, with the axis of query heads, if it has one, split by key heads."""
        if axes[2] is not None:
            at = axes[2] + (axes[0] is not None and self.sizes.batch is not None)
            x = x.reshape(*x.shape[:at], *self.sizes.group, *x.shape[at + 1 :])
        self.arrays[name], self.axes[name] = x, axes


def resolve(mechanism: str | Mechanism) -> Mechanism:
    """Returns the mechanism with this name, or the mechanism itself."""
    if isinstance(mechanism, str):
        return pick(MECHANISMS, mechanism, "mechanism")
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"expected a mechanism or its name, for example 'softmax', got {mechanism!r}")
    return mechanism
