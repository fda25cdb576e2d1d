"""The entry point: cuts queries and keys into blocks, plans the schedule, and defines the custom gradient."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import FunctionType, MethodType

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from attnlab.ops.blockwise.schedule import LoopSchedule, PositionedMask, plan_blocks
from attnlab.ops.blockwise.sweep import Plan, backward, forward
from attnlab.ops.blockwise.vmap_groups import vmap_in_groups
from attnlab.ops.learned_score import Scores
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.softmax import masked_softmax
from attnlab.ops.split import pad_to_multiple
from attnlab.ops.varying import varying_like

# Pairs that one step aims to hold on a CPU: so many heads are taken together that they have about as many pairs.
PANEL = 2**20


def attend(
    q: Float[Array, "T K"],
    k: Float[Array, "S K"],
    v: Float[Array, "S V"],
    scores: Scores,
    masks: Sequence[PositionedMask],
    *,
    i: Int[ArrayOrNumpy, " T"],
    j: Int[ArrayOrNumpy, " S"],
    block: int,
    schedule: LoopSchedule | None = None,
) -> tuple[Float[Array, "T V"], Float[Array, " T"]]:
    """Computes softmax(scores(q, k)) v over the pairs that all masks allow.

    Args:
      q: queries [T K].
      k: keys [S K].
      v: values [S V].
      scores: the score function with its learned arrays and bias.
      masks: masks with their positions. A pair must be allowed by all of them.
      i: positions of queries for the scores [T].
      j: positions of keys for the scores [S].
      block: largest number of rows of a block, of queries and of keys.
      schedule: which blocks of keys each block of queries attends to, if the caller knows more than the masks say.
        None (the default) derives it from the masks. A block must have `equal_blocks(T, block)` queries and
        `equal_blocks(S, block)` keys.

    Returns:
      The outputs [T V], and the logarithm of the sum of exponentials of each query [T], in float32 at least. A row
      without any allowed key is zero, with a logarithm of −∞.

    Raises:
      NotImplementedError: if a function in `scores` or `masks` hides a traced array in a closure or an attribute.
    """
    T, S = q.shape[0], k.shape[0]
    if T == 0 or S == 0:
        return jnp.zeros((T, v.shape[1]), accumulation_dtype(v.dtype)), jnp.full(
            T, -jnp.inf, accumulation_dtype(v.dtype)
        )
    rows, columns = equal_blocks(T, block), equal_blocks(S, block)
    q, k, scores = scores.plain(q, k)
    padded = tuple(
        PositionedMask(x.mask, pad_to_multiple(x.i, rows, "edge"), pad_to_multiple(x.j, columns, "edge")) for x in masks
    )
    planned = plan_blocks(masks, T, S, rows, columns) if schedule is None else schedule
    plan = Plan(scores, pad_to_multiple(i, rows, "edge"), pad_to_multiple(j, columns, "edge"), padded, planned, rows, S)
    y, norm = _call(pad_to_multiple(q, rows), pad_to_multiple(k, columns), pad_to_multiple(v, columns), plan)
    return y[:T], norm[:T]


def merge_parts(parts: Sequence[tuple[Float[Array, "T V"], Float[Array, " T"]]]) -> Float[Array, "T V"]:
    """Merges attention over disjoint sets of keys, as if it had been computed over all keys at once.

    Args:
      parts: for each set, the outputs [T V] and the logarithms of the sums of exponentials [T], as by `attend`.

    Returns:
      The outputs [T V].
    """
    norms = jnp.stack([norm for _, norm in parts], axis=1)
    shares = masked_softmax(norms, ~jnp.isneginf(norms))
    return jnp.sum(shares[:, :, None] * jnp.stack([y for y, _ in parts], axis=1), axis=1)


def equal_blocks(length: int, block: int) -> int:
    """Returns the block size, at most `block`, that needs the least padding."""
    count = -(-length // block)
    size = -(-length // count)
    return min(block, -(-size // 8) * 8) if count > 1 else size


def _call(q, k, v, plan: Plan):
    """Runs the forward and backward pass by blocks, as a function with a custom gradient.

    Traced leaves of the plan are passed as arguments. Known leaves stay in the closure, where they are constants.
    """
    leaves, tree = jax.tree.flatten(plan)
    # Leaves of the plan are of three kinds: "learned" ones have a gradient, "given" ones (traced masks and positions)
    # have none, and "known" ones are constants.
    learns = {id(x) for x in jax.tree.leaves(plan.scores) if _traced(x) and jnp.issubdtype(x.dtype, jnp.inexact)}
    kinds = ["learned" if id(x) in learns else "given" if _traced(x) else "known" for x in leaves]
    of = lambda kind: [x for x, its in zip(leaves, kinds, strict=True) if its == kind]
    if hiding := next(filter(_hides, of("known")), None):
        raise NotImplementedError(
            f"{getattr(hiding, '__name__', type(hiding).__name__)} holds a traced array outside of a pytree; "
            "make the array a leaf of a pytree, for example by jax.tree_util.Partial(function, array)"
        )

    def planned(learned, given) -> Plan:
        held = {"learned": iter(learned), "given": iter(given), "known": iter(of("known"))}
        return jax.tree.unflatten(tree, [next(held[kind]) for kind in kinds])

    room = PANEL // (plan.rows * max(1, plan.schedule.width))
    ahead = vmap_in_groups(lambda q, k, v, learned, given: forward(q, k, v, planned(learned, given)), room)

    def behind(q, k, v, learned, given, *rest):
        return backward(q, k, v, learned, lambda learned: planned(learned, given), *rest)

    run = jax.custom_vjp(ahead)
    run.defvjp(
        lambda *args: ((out := ahead(*args)), (args, out)),
        lambda saved, changes: (*vmap_in_groups(behind, room)(*saved[0], *saved[1], *changes), None),
    )
    # The gradient of an argument must vary like the argument, and it varies like all of them together.
    return run(*varying_like((q, k, v, of("learned")), of("given")), of("given"))


def _hides(x) -> bool:
    """Returns whether a function holds a traced array in its closure, in bound arguments or in attributes."""
    if isinstance(x, partial):
        return _hides(x.func) or any(_holds(held) for held in (x.args, x.keywords))
    if isinstance(x, MethodType):
        return _hides(x.__func__) or _hides(x.__self__)
    cells = (x.__closure__ or ()) if isinstance(x, FunctionType) else ()
    return _holds([*getattr(x, "__dict__", {}).values()]) or any(_holds(cell.cell_contents) for cell in cells)


def _holds(held) -> bool:
    """Returns whether any leaf of a tree is traced."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(held))


def _traced(x) -> bool:
    """Returns whether a value is a jax array, possibly traced."""
    return isinstance(x, jax.Array)
