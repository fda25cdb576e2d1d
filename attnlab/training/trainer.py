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

# Steps to a dispatch: enough that its overhead vanishes, and the length of a run of equal shapes. On a CPU the overhead
# is the memory of temporaries, which is taken from the system anew each time: with eight lanes on recall 52,000 pages a
# dispatch, 50 ms beside a step's 200. The smallest steps, of one lane, would be a sixth quicker outside of a loop.
DISPATCH = 8


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

    def batches(self, step: int, stop: int) -> tuple[dict[str, np.ndarray], int]:
        """The batches [DISPATCH, lanes, B, ...] of steps from `step` up to `stop`, as far as shapes agree; how many."""
        size = self.train.batch_size * self.train.accumulate
        rows, shape = [], None
        for at in range(step, min(stop, step + DISPATCH)):
            by_seed = {seed: self.problem.batch(seed, at, size) for seed in self.train.seed_list}
            row = {
                name: np.stack([by_seed[seed][name] for seed, _ in self.train.lanes])
                for name in by_seed[self.train.seed_list[0]]
            }
            if shape not in (None, {name: x.shape for name, x in row.items()}):
                break
            shape = {name: x.shape for name, x in row.items()}
            rows.append(row)
        # Filled up with the last one, which is not trained on: one program serves any number of steps.
        filled = rows + rows[-1:] * (DISPATCH - len(rows))
        return {name: np.stack([row[name] for row in filled]) for name in rows[0]}, len(rows)

    def advance(self, state: lane.State, batches: dict[str, np.ndarray], count: int):
        """`count` steps of every lane in one dispatch. Answers (state, {metric: [count, lanes]})."""
        program, placed = _advance(self.problem.loss, self.train), {}
        with fitting(self.train, "training"):
            if self.spread is not None:
                state, batches = jax.device_put((state, batches), (self.spread.lanes, self.spread.batches))
                placed = {"out_shardings": (self.spread.lanes, self.spread.whole)}
            arguments = state, batches, np.int32(count)
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
            for batch in self.problem.examination(part, limit):
                found.append(np.asarray(self._compile("loss", loss, (model, batch))(model, batch), np.float64))
        return np.mean(found, axis=0).tolist()

    def scores(self, part: str, answers: list[list[Any]], limit: int | None = None) -> list[dict[str, float]]:
        """The metrics of every lane, from what `answers` found."""
        return [self.problem.score(part, lane, limit) for lane in answers]

    def answers(self, model: Any, part: str, limit: int | None = None, decoder: Any = None) -> list[list[Any]]:
        """What every lane's model answers to the batches of an examination: a list of batches for each lane."""
        answer = self.problem.answer if decoder is None else partial(self.problem.answer, decoder=decoder)
        what, answers = "answer" if decoder is None else f"answer by {decoder}", []
        with fitting(self.train, "answering"):
            for batch in self.problem.examination(part, limit):
                program = self._compile(what, jax.vmap(answer, (0, None)), (model, batch))
                answers.append(jax.tree.map(np.asarray, program(model, batch)))
        lanes = range(len(self.train.lanes))
        return [[jax.tree.map(lambda x, n=n: x[n], answer) for answer in answers] for n in lanes]

    def _compile(self, what: str, function: Callable, arguments: tuple, **options: Any) -> Callable:
        """The function compiled for these shapes, once; the options are those of `jax.jit`."""
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(arguments[1]))
        if (what, shapes) not in self.compiled:
            widths = " ".join("×".join(map(str, x.shape[-2:])) for x in jax.tree.leaves(arguments[1]))
            self.announce(f"{what} {widths}")
            began = time.perf_counter()
            self.compiled[what, shapes] = jax.jit(function, **options).lower(*arguments).compile()
            seconds = time.perf_counter() - began
            self.compile_seconds += seconds
            self.announced(f"{what} {widths}", seconds)
        return self.compiled[what, shapes]


def _peak(program: Any) -> int:
    """The bytes that a compiled program holds at most: what it is given, what it answers, and what lies between."""
    found = program.memory_analysis()
    given, answered, shared = (getattr(found, f"{what}_size_in_bytes") for what in ("argument", "output", "alias"))
    return given + answered - shared + found.temp_size_in_bytes


def _advance(loss: Callable, train: Train) -> Callable:
    """Steps of all lanes: a loop whose count is traced, so that one program serves dispatches of any length."""
    # Jitted, it is traced once for both uses below.
    one = jax.jit(jax.vmap(partial(lane.step, loss, train)), inline=True)

    def advance(state, batches, count):
        first = jax.tree.map(lambda x: x[0], batches)
        shapes = jax.eval_shape(one, state, first)[1]
        record = jax.tree.map(lambda x: jnp.zeros((DISPATCH, *x.shape), x.dtype), shapes)

        def body(n, carry):
            state, record = carry
            state, metrics = one(state, jax.tree.map(lambda x: x[n], batches))
            return state, jax.tree.map(lambda old, new: old.at[n].set(new), record, metrics)

        return jax.lax.fori_loop(0, count, body, (state, record))

    return advance
