"""The training of one lane as pure functions of its key: `start` and `step`. Lanes are a vmap of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from attnlab.training.config import Train
from attnlab.training.optimiser import decays, optimiser, schedule
from attnlab.training.packing import Packing
from attnlab.training.shapes import Shapes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """The state of one lane.

    In a `Trainer` every array has a leading axis of lanes.
    """

    model: PyTree
    """The current model."""
    optimiser: PyTree
    """The state of the optimiser, whose arrays are packed (see `attnlab.training.packing`)."""
    key: PRNGKeyArray
    """The random key of the lane. The key of a step, for example for dropout, is derived from it."""
    rate: Float[Array, ""]
    """The peak learning rate."""
    step: Int[Array, ""]
    """The number of steps done."""
    diverged_step: Int[Array, ""]
    """The step, counted from 0, in which the lane diverged, or −1."""
    first_nonfinite: Int[Array, ""]
    """The index in `parameter_names` of the first quantity that was not finite when the lane diverged, or −1."""
    stopped: Int[Array, ""]
    """The number of steps done when the lane stopped early, or −1."""
    best: Float[Array, ""]
    """The best validation score so far, signed so that more is better (see `attnlab.training.stopping`)."""
    evaluations_since_best: Int[Array, ""]
    """The number of evaluations since the best score."""
    mean: PyTree = None
    """The mean of the models so far, or None without averaging (see `attnlab.training.averaging`)."""
    best_model: PyTree = None
    """The model with the best validation score, or None if best models are not restored."""
    best_step: PyTree = None
    """The step of `best_model`, −1 before there is one, or None if best models are not restored."""

    @property
    def alive(self) -> Bool[Array, ""]:
        """Whether all numbers of the lane have been finite so far."""
        return self.diverged_step < 0

    @property
    def is_training(self) -> Bool[Array, ""]:
        """Whether the lane is still updated: it has neither diverged nor stopped early."""
        return self.alive & (self.stopped < 0)


@runtime_checkable
class HasMultipliers(Protocol):
    """A model whose parts have learning rates of their own."""

    @property
    def lr_multipliers(self) -> Mapping[str, float]:
        """The factor of the learning rate by the name of a top-level part. Parts that are not named have 1."""
        ...


def start(
    create: Callable[[PRNGKeyArray], PyTree], train: Train, seed: Int[Array, ""], rate: Float[Array, ""]
) -> State:
    """Returns the state of a lane before its first step.

    The key of the model and the key of the dropout are both derived from the seed.

    Args:
        create: Creates a model from a key.
        train: The training configuration.
        seed: The seed of the lane.
        rate: The peak learning rate of the lane.
    """
    key = jax.random.key(seed)
    model = create(jax.random.fold_in(key, 0))
    # Every field has its own array: a donated buffer may not be shared by two fields.
    step, waits = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
    diverged_step, first_nonfinite, stopped = (jnp.full((), -1, jnp.int32) for _ in range(3))
    best = jnp.full((), -jnp.inf, jnp.float32)
    mean = jax.tree.map(jnp.zeros_like, model) if train.average else None
    packing = Packing(model)
    memory, key = _optimiser(train, packing).init(packing.pack(model)), jax.random.fold_in(key, 1)
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
    """Updates a lane on one batch.

    If the loss, the gradient or the new model is not finite, the lane keeps the values that it had before the step. A
    lane that diverged or stopped earlier keeps its model, too. Other lanes are not affected.

    The parts of a model that `HasMultipliers` are trained with the lane's learning rate multiplied by their factor.

    Args:
        loss: The loss function, `loss(model, batch, key) -> (scalar, metrics)`.
        train: The training configuration.
        state: The state of the lane.
        batch: The batch of the lane. If there are several `shapes`, it is padded to the largest.
        kind: The index in `shapes` of the shape of this batch without padding.
        shapes: The shapes that a batch can have.

    Returns:
        The new state, and the metrics by name: "loss", "gradient_norm" (before clipping) and those of `loss`.
    """
    key = jax.random.fold_in(state.key, state.step)
    # Each shape is compiled as its own branch, and `kind` selects the one that runs.
    branches = [partial(gradients, loss, train.accumulate, shape) for shape in shapes]
    (value, metrics), gradient = jax.lax.switch(kind, branches, state.model, batch, key)
    packing = Packing(state.model)
    gradient, before = packing.pack(gradient), packing.pack(state.model)
    squares = packing.squares(gradient)
    norm = jnp.sqrt(jnp.sum(squares))
    direction, memory = _optimiser(train, packing).update(gradient, state.optimiser, before)
    scale = -state.rate * schedule(train)(state.step)
    move = lambda p, d, pace: p + (pace * scale * d).astype(p.dtype)
    after = jax.tree.map(move, before, direction, _paces(packing, scale.dtype))
    # Testing the sums of squares is cheaper than testing each number. It also rejects weights whose squares overflow,
    # which would not give finite products either.
    weights = packing.squares(after)
    finite = jnp.isfinite(value) & jnp.isfinite(norm) & jnp.isfinite(jnp.sum(weights))
    dies = state.is_training & ~finite
    diverged_step = jnp.where(dies, state.step, state.diverged_step)
    first_nonfinite = jnp.where(dies, _first_nonfinite(value, squares, weights), state.first_nonfinite)
    new, old = (after, memory), (before, state.optimiser)
    after, memory = jax.tree.map(lambda a, b: jnp.where(state.is_training & finite, a, b), new, old)
    return replace(
        state,
        model=packing.unpack(after),
        optimiser=memory,
        step=state.step + 1,
        diverged_step=diverged_step,
        first_nonfinite=first_nonfinite,
    ), {
        "loss": value,
        "gradient_norm": norm,
        **metrics,
    }


def _optimiser(train: Train, packing: Packing) -> optax.GradientTransformation:
    """Returns the optimiser of packed parameters."""
    return optimiser(train, packing.spread(jax.tree.leaves(decays(packing.like))))


def _paces(packing: Packing, dtype: jnp.dtype) -> list[np.ndarray]:
    """Returns the factors of the learning rate for packed parameters, from the model's `lr_multipliers`."""
    model = packing.like
    named = model.lr_multipliers if isinstance(model, HasMultipliers) else {}
    parts = [path[:1] for path, _ in jax.tree_util.tree_leaves_with_path(model)]
    paces = [named.get(jax.tree_util.keystr(part, simple=True), 1.0) for part in parts]
    return packing.spread(paces, dtype)


def select_lane(tree: PyTree, lane: int) -> PyTree:
    """Returns the arrays of one lane from a tree whose arrays have a leading axis of lanes.

    They are sliced on the host: a device would compile a program for the shape of each array.
    """
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[lane]), tree)


def parameter_names(model: PyTree) -> list[str]:
    """Returns the names of what may become non-finite in a step of that model.

    These are the loss, then the gradient of each leaf, then each leaf itself.
    """
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(model)]
    names = [jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(".value") for path in paths]
    return ["the loss", *(f"the gradient of {name}" for name in names), *names]


def _first_nonfinite(
    value: Float[Array, ""], gradient: Float[Array, " n"], model: Float[Array, " n"]
) -> Int[Array, ""]:
    """Returns the index in `parameter_names` of the first quantity that is not finite.

    If only the sum over all leaves overflows, it is the index of the largest leaf.
    """
    first = lambda squares: jnp.argmax(jnp.where(jnp.isfinite(squares), squares, jnp.inf)).astype(jnp.int32)
    of_model = jnp.where(jnp.isfinite(jnp.sum(gradient)), len(gradient) + first(model), first(gradient))
    return jnp.where(jnp.isfinite(value), 1 + of_model, 0).astype(jnp.int32)


def gradients(
    loss: Callable, accumulate: int, shape: Shapes, model: PyTree, batch: dict[str, Array], key: PRNGKeyArray
):
    """Computes the loss, the metrics and the gradient of a batch.

    The batch is first cut to `shape`. An array that is not named there is used whole. The batch is then split into
    `accumulate` equal parts, which are computed one after another and averaged.

    Args:
        loss: The loss function, `loss(model, batch, key) -> (scalar, metrics)`.
        accumulate: The number of parts. It must divide the number of examples.
        shape: The shape of each array of the batch without padding, by name.
        model: The model.
        batch: The batch, by name.
        key: The random key. With several parts, each has its own.

    Returns:
        ((loss, metrics), gradient).
    """
    batch = {name: x[tuple(map(slice, shape[name]))] if name in shape else x for name, x in batch.items()}
    whole = jax.value_and_grad(loss, has_aux=True)
    if accumulate == 1:
        return whole(model, batch, key)
    parts = jax.tree.map(lambda x: x.reshape(accumulate, -1, *x.shape[1:]), batch)
    keys = jax.random.split(key, accumulate)
    # Summed in a scan, so that memory holds the activations of one part only.
    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(whole, model, jax.tree.map(lambda x: x[0], parts), key))

    def add(total, here):
        return jax.tree.map(jnp.add, total, whole(model, *here)), None

    total, _ = jax.lax.scan(add, zero, (parts, keys))
    return jax.tree.map(lambda x: x / accumulate, total)
