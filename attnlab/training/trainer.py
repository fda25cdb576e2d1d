"""All lanes of one variant as one program: compiled steps and answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.training import state as lane
from attnlab.training.config import Train
from attnlab.training.devices import Devices, devices
from attnlab.training.memory import fitting
from attnlab.training.shapes import Shapes, Steps, stack_steps

# Steps to a dispatch: enough that its overhead vanishes. On a CPU that is the memory of temporaries, which comes from
# the system anew each time: of dates with three lanes a dispatch of one step takes twice as long as a step in a loop.
DISPATCH = 8
# What is compiled, in words; the others are answers by a decoder.
PROGRAMS = {"train": "the training step", "loss": "the loss", "answer": "the answers"}


@dataclass
class Trainer:
    """Seeds × learning rates of one model on one problem, trained together.

    `create(key) -> model`; `problem` follows `attnlab.tasks.base.Problem`. `announce(what)` and `announced(what,
    seconds)` hear of every compilation. `devices` are those to compute on; None: all of them.
    """

    create: Callable
    problem: Any
    train: Train
    announce: Callable[[str], None] = lambda what: None
    announced: Callable[[str, float], None] = lambda what, seconds: None
    devices: Sequence[Any] | None = None
    compiled: dict = field(default_factory=dict)
    compile_seconds: float = 0.0
    memory_bytes: int | None = None  # of a dispatch of training, as the compiler estimates its peak; None before one

    @cached_property
    def spread(self) -> Devices | None:
        """How lanes and batches lie over the devices; None where there is one."""
        return devices(len(self.train.lanes), self.train.batch_size * self.train.accumulate, self.devices)

    def start(self) -> lane.State:
        """Every lane before its first step."""
        seeds, rates = zip(*self.train.lanes, strict=True)
        # Not jitted as a whole: op by op, later variants find what the first one compiled.
        begin = jax.vmap(partial(lane.start, self.create, self.train))
        with fitting(self.train, "creating the models"):
            return begin(jnp.asarray(seeds, jnp.uint32), jnp.asarray(rates, jnp.float32))

    def batches(self, step: int, stop: int) -> tuple[Steps, int]:
        """The batches of the steps from `step` up to `stop`, of one dispatch at most, and how many steps these are.

        A dispatch ends before a step whose batch has other arrays, as where another phase of training begins.
        """
        rows = []
        for at in range(step, min(stop, step + DISPATCH)):
            row = self._row(at)
            if rows and row.keys() != rows[0].keys():
                break
            rows.append(row)
        return stack_steps(rows, self._shapes[frozenset(rows[0])], DISPATCH), len(rows)

    def _row(self, step: int) -> dict[str, np.ndarray]:
        """The batch of a step for every lane [lanes, B, ...]."""
        size = self.train.batch_size * self.train.accumulate
        by_seed = {seed: self.problem.batch(seed, step, size) for seed in self.train.seed_list}
        names = by_seed[self.train.seed_list[0]]
        return {name: np.stack([by_seed[seed][name] for seed, _ in self.train.lanes]) for name in names}

    @cached_property
    def _shapes(self) -> dict[frozenset[str], list[Shapes]]:
        """The shapes of a lane's batches, by the names of their arrays."""
        found: dict[frozenset[str], list[Shapes]] = {}
        size = self.train.batch_size * self.train.accumulate
        for step in self.problem.first_steps:
            batch = self.problem.batch(self.train.seed_list[0], step, size)
            shapes = {name: np.shape(x) for name, x in batch.items()}
            if shapes not in found.setdefault(frozenset(batch), []):
                found[frozenset(batch)].append(shapes)
        return found

    def advance(self, state: lane.State, steps: Steps, count: int):
        """`count` steps of every lane in one dispatch. Answers (state, {metric: [count, lanes]})."""
        program, placed = _advance(self.problem.loss, self.train, steps.shapes), {}
        batches: Any = steps.batches
        with fitting(self.train, "training"):
            if self.spread is not None:
                state, batches = jax.device_put((state, batches), (self.spread.lanes, self.spread.batches))
                placed = {"out_shardings": (self.spread.lanes, self.spread.whole)}
            arguments = state, batches, steps.kind, np.int32(count)
            program = self._compile("train", program, arguments, donate_argnums=0, **placed)
            self.memory_bytes = max(self.memory_bytes or 0, _peak(program))
            state, metrics = program(*arguments)
            return state, {name: np.asarray(values)[:count] for name, values in metrics.items()}

    def evaluate(self, model: Any, part: str, limit: int | None = None, decoder: Any = None) -> list[dict[str, float]]:
        """The metrics of every lane's model on a part of the data, answered by a decoder where one is given."""
        return self.scores(part, self.answers(model, part, limit, decoder), limit)

    def losses(self, model: Any, part: str, limit: int | None = None) -> list[float]:
        """The loss of every lane's model on a part of the data: the mean over the batches of its examination."""
        loss = jax.vmap(lambda model, batch: self.problem.loss(model, batch, None)[0], (0, None))
        found = []
        with fitting(self.train, "answering"):
            for batch in self.problem.eval_batches(part, limit):
                found.append(np.asarray(self._compile("loss", loss, (model, batch))(model, batch), np.float64))
        return np.mean(found, axis=0).tolist()

    def scores(self, part: str, answers: list[list[Any]], limit: int | None = None) -> list[dict[str, float]]:
        """The metrics of every lane, from what `answers` found."""
        return [self.problem.score(part, lane, limit) for lane in answers]

    def answers(self, model: Any, part: str, limit: int | None = None, decoder: Any = None) -> list[list[Any]]:
        """What every lane's model answers to the batches of an examination: a list of batches for each lane."""
        answer = self.problem.answer if decoder is None else partial(self.problem.answer, decoder=decoder)
        what, answers = "answer" if decoder is None else f"the answers by {decoder}", []
        with fitting(self.train, "answering"):
            for batch in self.problem.eval_batches(part, limit):
                program = self._compile(what, jax.vmap(answer, (0, None)), (model, batch))
                answers.append(jax.tree.map(np.asarray, program(model, batch)))
        lanes = range(len(self.train.lanes))
        return [[jax.tree.map(lambda x, n=n: x[n], answer) for answer in answers] for n in lanes]

    def _compile(self, what: str, function: Callable, arguments: tuple, **options: Any) -> Callable:
        """The function compiled for these shapes, once; the options are those of `jax.jit`."""
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(arguments[1]))
        if (what, shapes) not in self.compiled:
            said = f"{PROGRAMS.get(what, what)} ({_sizes(arguments[1], 2 if what == 'train' else 0)})"
            self.announce(said)
            began = time.perf_counter()
            self.compiled[what, shapes] = jax.jit(function, **options).lower(*arguments).compile()
            seconds = time.perf_counter() - began
            self.compile_seconds += seconds
            self.announced(said, seconds)
        return self.compiled[what, shapes]


def _sizes(batches: dict[str, Any], leading: int) -> str:
    """The sizes of a batch in words, after so many axes of steps and lanes.

    >>> _sizes({"source": np.zeros((32, 24)), "target": np.zeros((32, 12)), "label": np.zeros(32)}, 0)
    'batch 32, 24 and 12 tokens'
    >>> _sizes({"image": np.zeros((8, 1, 64, 28, 28))}, 2)
    'batch 64, 28×28'
    """
    shapes = [x.shape[leading:] for x in jax.tree.leaves(batches)]
    size = max((shape[0] for shape in shapes if shape), default=0)
    lengths = " and ".join(dict.fromkeys(str(shape[1]) for shape in shapes if len(shape) == 2))
    areas = dict.fromkeys("×".join(map(str, shape[1:])) for shape in shapes if len(shape) > 2)
    return ", ".join([f"batch {size}", *([f"{lengths} tokens"] if lengths and not areas else []), *areas])


def _peak(program: Any) -> int:
    """The bytes that a compiled program holds at most: what it is given, what it answers, and what lies between."""
    found = program.memory_analysis()
    given, answered, shared = (getattr(found, f"{what}_size_in_bytes") for what in ("argument", "output", "alias"))
    return given + answered - shared + found.temp_size_in_bytes


def _advance(loss: Callable, train: Train, shapes: Sequence[Shapes]) -> Callable:
    """Steps of all lanes: a loop whose count is traced, so that one program serves dispatches of any length."""
    # Jitted, it is traced once for both uses below. All lanes share the kind: a switch stays one.
    one = jax.jit(jax.vmap(partial(lane.step, loss, train, shapes=shapes), (0, 0, None)), inline=True)

    def advance(state, batches, kind, count):
        first = jax.tree.map(lambda x: x[0], batches)
        metrics = jax.eval_shape(one, state, first, kind[0])[1]
        record = jax.tree.map(lambda x: jnp.zeros((DISPATCH, *x.shape), x.dtype), metrics)

        def body(n, carry):
            state, record = carry
            state, metrics = one(state, jax.tree.map(lambda x: x[n], batches), kind[n])
            return state, jax.tree.map(lambda old, new: old.at[n].set(new), record, metrics)

        return jax.lax.fori_loop(0, count, body, (state, record))

    return advance
