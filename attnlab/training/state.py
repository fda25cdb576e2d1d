"""The training of one lane as a pure function of its key: `start` and `step`; lanes are a vmap of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.training.config import Train
from attnlab.training.optimiser import optimiser, schedule
from attnlab.training.shapes import Shapes, by_shape


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """One lane: its model, its optimiser, its key and rate, the steps done.

    `diverged_step` is the step, counted from 0, in which it diverged, `stopped` how many it had made when it was done
    early, −1 where it did not, or was not; `first_nonfinite` says what was not finite first when it diverged
    (`parameter_names` names it by this number), −1 where all is; `best` is its best merit on validation so far,
    `evaluations_since_best` the evaluations since (`attnlab.training.stopping`), `mean` the average of its models so
    far, where one is asked for (`attnlab.training.averaging`). Where lanes go back to it, `best_model` is its best
    model on validation, and `best_step` the step of that, −1 before there is one.
    """

    model: Any
    optimiser: Any
    key: PRNGKeyArray
    rate: Float[Array, ""]
    step: Int[Array, ""]
    diverged_step: Int[Array, ""]
    first_nonfinite: Int[Array, ""]
    stopped: Int[Array, ""]
    best: Float[Array, ""]
    evaluations_since_best: Int[Array, ""]
    mean: Any = None
    best_model: Any = None
    best_step: Any = None

    @property
    def alive(self) -> Bool[Array, ""]:
        """Whether its numbers are still finite."""
        return self.diverged_step < 0

    @property
    def is_training(self) -> Bool[Array, ""]:
        """Whether it still moves: alive, and not done."""
        return self.alive & (self.stopped < 0)


def start(create: Callable[[PRNGKeyArray], Any], train: Train, seed: Int[Array, ""], rate: Float[Array, ""]) -> State:
    """A lane before its first step. The model's key and the dropout's key both come from the seed."""
    key = jax.random.key(seed)
    model = create(jax.random.fold_in(key, 0))
    # Each its own array: what is donated may not be shared.
    step, waits = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
    diverged_step, first_nonfinite, stopped = (jnp.full((), -1, jnp.int32) for _ in range(3))
    best = jnp.full((), -jnp.inf, jnp.float32)
    mean = jax.tree.map(jnp.zeros_like, model) if train.average else None
    memory, key = optimiser(train).init(model), jax.random.fold_in(key, 1)
    if train.patience and train.restore_best:
        kept, at = jax.tree.map(jnp.zeros_like, model), jnp.full((), -1, jnp.int32)
    else:
        kept, at = None, None
    return State(model, memory, key, rate, step, diverged_step, first_nonfinite, stopped, best, waits, mean, kept, at)


def step(
    loss: Callable,
    train: Train,
    state: State,
    batch: dict[str, Array],
    kind: Int[Array, ""] | int = 0,
    shapes: Sequence[Shapes] = ({},),
) -> tuple[State, dict[str, Array]]:
    """One update on one batch: `loss(model, batch, key) -> (scalar, metrics)`. Answers the state and the metrics.

    Where there are several `shapes`, the batch is padded, and is cut to the one that `kind` names.

    A model may hold `paces`, {name of a part of it: factor}: that part learns at the lane's rate times that factor.

    A lane whose loss, gradient or new model is not finite is frozen as it was before that step, one that is done as it
    was then; their neighbours go on.
    """
    key = jax.random.fold_in(state.key, state.step)
    differentiate = by_shape(partial(gradients, loss, train.accumulate), shapes, kind)
    (value, metrics), gradient = differentiate(state.model, batch, key)
    squares = _squares(gradient)
    norm = jnp.sqrt(jnp.sum(squares))
    direction, memory = optimiser(train).update(gradient, state.optimiser, state.model)
    scale = -state.rate * schedule(train)(state.step)
    move = lambda path, p, d: p + (_pace(state.model, path) * scale * d).astype(p.dtype)
    model = jax.tree_util.tree_map_with_path(move, state.model, direction)
    # The norms, not each number: weights whose squares overflow give no finite product either.
    weights = _squares(model)
    finite = jnp.isfinite(value) & jnp.isfinite(norm) & jnp.isfinite(jnp.sum(weights))
    dies = state.is_training & ~finite
    diverged_step = jnp.where(dies, state.step, state.diverged_step)
    first_nonfinite = jnp.where(dies, _first_nonfinite(value, squares, weights), state.first_nonfinite)
    new, old = (model, memory), (state.model, state.optimiser)
    model, memory = jax.tree.map(lambda a, b: jnp.where(state.is_training & finite, a, b), new, old)
    return replace(
        state,
        model=model,
        optimiser=memory,
        step=state.step + 1,
        diverged_step=diverged_step,
        first_nonfinite=first_nonfinite,
    ), {
        "loss": value,
        "gradient_norm": norm,
        **metrics,
    }


def _pace(model: Any, path: tuple[Any, ...]) -> float:
    """How fast a leaf learns beside the lane's rate: as the model's `paces` say of the part it is in, else alike."""
    part = jax.tree_util.keystr(path[:1], simple=True)
    return getattr(model, "paces", {}).get(part, 1.0)


def parameter_names(model: Any) -> list[str]:
    """What may cease to be finite in a step of that model: the loss, the gradient of each leaf, each leaf itself."""
    names = [
        jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(".value") for path, _ in _leaves(model)
    ]
    return ["the loss", *(f"the gradient of {name}" for name in names), *names]


def _first_nonfinite(
    value: Float[Array, ""], gradient: Float[Array, " n"], model: Float[Array, " n"]
) -> Int[Array, ""]:
    """The first of `parameter_names` that is not finite; where only a sum overflows, the largest in it."""
    first = lambda squares: jnp.argmax(jnp.where(jnp.isfinite(squares), squares, jnp.inf)).astype(jnp.int32)
    of_model = jnp.where(jnp.isfinite(jnp.sum(gradient)), len(gradient) + first(model), first(gradient))
    return jnp.where(jnp.isfinite(value), 1 + of_model, 0).astype(jnp.int32)


def _squares(tree: Any) -> Float[Array, " n"]:
    """The sum of squares of each leaf."""
    return jnp.stack([jnp.sum(jnp.square(jnp.abs(leaf))) for _, leaf in _leaves(tree)])


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_leaves_with_path(tree)


def gradients(loss: Callable, accumulate: int, model: Any, batch: dict[str, Array], key: PRNGKeyArray):
    """((loss, metrics), gradient), averaged over `accumulate` equal parts of the batch, one after another."""
    whole = jax.value_and_grad(loss, has_aux=True)
    if accumulate == 1:
        return whole(model, batch, key)
    parts = jax.tree.map(lambda x: x.reshape(accumulate, -1, *x.shape[1:]), batch)
    keys = jax.random.split(key, accumulate)
    # Summed in a scan, so that only one part's activations stand in memory.
    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(whole, model, jax.tree.map(lambda x: x[0], parts), key))

    def add(total, here):
        return jax.tree.map(jnp.add, total, whole(model, *here)), None

    total, _ = jax.lax.scan(add, zero, (parts, keys))
    return jax.tree.map(lambda x: x / accumulate, total)
