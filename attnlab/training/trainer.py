"""The trainer of one variant: it compiles and runs the training steps and the answers of all lanes as one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled, Lowered
from jaxtyping import PyTree

from attnlab.system import freed_memory
from attnlab.system.background import Background
from attnlab.training import state as lane
from attnlab.training.config import Train
from attnlab.training.devices import Devices, devices
from attnlab.training.memory import readable_memory_errors
from attnlab.training.problem import TrainingProblem, check_scores
from attnlab.training.programs import ahead_result, filled, peak_memory, program_key, sizes_text
from attnlab.training.shapes import Shapes, Steps, stack_steps

# Steps in one dispatch: enough that the overhead of a dispatch becomes negligible. On a CPU the overhead is the memory
# of temporaries, which is requested from the system at each dispatch. For `dates` with three lanes, a dispatch of one
# step takes twice as long as one step of a longer dispatch.
DISPATCH = 8
# Validation examples of an evaluation during training.
VALIDATED = 512
# How messages name the compiled programs. Programs that are not listed are answers by a particular decoder.
PROGRAMS = {"train": "the training step", "loss": "the loss", "answer": "the answers"}


@dataclass
class Trainer:
    """Trains all seeds × learning rates of one model on one task, together.

    Programs are compiled once for each shape of their arguments and kept.
    """

    create: Callable
    """Creates a model: `create(key) -> model`."""
    problem: TrainingProblem
    """The loaded data of the task, an `attnlab.tasks.base.task.TaskData`."""
    train: Train
    """The training configuration, which determines the lanes."""
    announce: Callable[[str], None] = lambda what: None
    """Called as `announce(what)` before each compilation."""
    announced: Callable[[str, float], None] = lambda what, seconds: None
    """Called as `announced(what, seconds)` after each compilation."""
    lowered: Callable[[], None] = lambda: None
    """Called when the training program has been traced, before it is compiled. Compilation leaves Python's lock to
    other threads, which tracing does not."""
    devices: Sequence[jax.Device] | None = None
    """The devices to compute on. None uses all devices."""
    compiled: dict[tuple, Compiled] = field(default_factory=dict)
    """The compiled programs by (name, shapes)."""
    ahead: dict[tuple, Future[Compiled]] = field(default_factory=dict)
    """The programs that are compiled in the background, by (name, shapes)."""
    compile_seconds: float = 0.0
    """The total time that was spent on compiling programs, or on waiting for them, so far, in seconds."""
    memory_bytes: int | None = None
    """The peak memory of a training dispatch in bytes, as estimated by the compiler. None before the first dispatch."""

    @cached_property
    def sharding(self) -> Devices | None:
        """The sharding of lanes and batches over the devices, or None for a single device."""
        return devices(len(self.train.lanes), self.train.batch_size * self.train.accumulate, self.devices)

    def start(self) -> lane.State:
        """Returns the state of all lanes before the first step. Each array has a leading axis of lanes."""
        seeds, rates = zip(*self.train.lanes, strict=True)
        # Not jitted as a whole: executed op by op, later variants reuse the ops that the first variant compiled.
        begin = jax.vmap(partial(lane.start, self.create, self.train))
        with readable_memory_errors(self.train, "creating the models"):
            return begin(jnp.asarray(seeds, jnp.uint32), jnp.asarray(rates, jnp.float32))

    def batches(self, step: int, stop: int) -> tuple[Steps, int]:
        """Returns the batches of the next steps, for at most one dispatch.

        A dispatch ends before a step whose batch has other arrays, for example if another phase of training begins.

        Args:
            step: The first step.
            stop: The step before which the dispatch ends at the latest.

        Returns:
            The stacked batches and the number of steps that they cover.
        """
        rows = []
        for at in range(step, min(stop, step + DISPATCH)):
            row = self._row(at)
            if rows and row.keys() != rows[0].keys():
                break
            rows.append(row)
        return stack_steps(rows, self._shapes[frozenset(rows[0])], DISPATCH), len(rows)

    def _row(self, step: int) -> dict[str, np.ndarray]:
        """Returns the batch of one step for every lane, with arrays [lanes, B, ...]."""
        size = self.train.batch_size * self.train.accumulate
        by_seed = {seed: self.problem.batch(seed, step, size) for seed in self.train.seed_list}
        names = by_seed[self.train.seed_list[0]]
        return {name: np.stack([by_seed[seed][name] for seed, _ in self.train.lanes]) for name in names}

    @cached_property
    def _shapes(self) -> dict[frozenset[str], list[Shapes]]:
        """The shapes that the batches of a lane can have, by the names of their arrays."""
        found: dict[frozenset[str], list[Shapes]] = {}
        size = self.train.batch_size * self.train.accumulate
        for step in self.problem.first_steps:
            batch = self.problem.batch(self.train.seed_list[0], step, size)
            shapes = {name: np.shape(x) for name, x in batch.items()}
            if shapes not in found.setdefault(frozenset(batch), []):
                found[frozenset(batch)].append(shapes)
        return found

    def advance(self, state: lane.State, steps: Steps, count: int):
        """Runs `count` steps of every lane in one dispatch.

        Args:
            state: The state of all lanes. Its buffers are donated and cannot be used afterwards.
            steps: The batches, as returned by `batches`.
            count: The number of steps to run, at most the number of steps that `steps` covers.

        Returns:
            The new state, and each metric by name as an array [count, lanes].

        Raises:
            OutOfMemoryError: If the program does not fit into memory.
        """
        batches = steps.batches
        with readable_memory_errors(self.train, "training"):
            if self.sharding is not None:
                state, batches = jax.device_put((state, batches), (self.sharding.lanes, self.sharding.batches))
            is_new = program_key("train", batches) not in self.compiled
            program = self._program("train", batches, lambda: self._lower_train(state, steps._replace(batches=batches)))
            if is_new:  # the analysis takes a tenth of a second, as long as a step of a small model
                self.memory_bytes = max(self.memory_bytes or 0, peak_memory(program))
            state, metrics = program(state, batches, steps.kind, np.int32(count))
            return state, {name: np.asarray(values)[:count] for name, values in metrics.items()}

    def compile_ahead(self, background: Background, training: bool, limit: int | None = VALIDATED) -> None:
        """Compiles programs in the background, before they are needed.

        Nothing is compiled ahead if the lanes are divided among several devices.

        Args:
            background: The thread that compiles.
            training: Whether to compile the training step, in addition to the answers to the validation data.
            limit: The number of validation examples. None is all.
        """
        if self.sharding is not None:
            return
        shapes = cache(lambda: jax.eval_shape(self.start))  # traced once, in the background
        if training:
            steps, _ = self.batches(0, self.train.steps)
            self._compile_in(background, "train", steps.batches, lambda: self._lower_train(shapes(), steps))
        for batch in self.problem.eval_batches("valid", limit):
            lower = lambda batch=batch: jax.jit(self._answer()).lower(shapes().model, batch)
            self._compile_in(background, "answer", batch, lower)

    def _compile_in(self, background: Background, what: str, batches: PyTree, lower: Callable[[], Lowered]) -> None:
        """Compiles a program in the background, unless it is compiled already."""
        if (key := program_key(what, batches)) not in self.compiled and key not in self.ahead:
            self.ahead[key] = background.submit(lambda: lower().compile())

    def evaluate(
        self, model: PyTree, part: str, limit: int | None = None, decoder: object = None
    ) -> list[dict[str, float]]:
        """Evaluates the model of every lane on one part of the data.

        Args:
            model: The models of all lanes, each array with a leading axis of lanes.
            part: "valid" or "test".
            limit: The number of examples to evaluate. None evaluates all.
            decoder: The decoder of the answers. None uses the task's default.

        Returns:
            The metrics by name for each lane.
        """
        return self.scores(part, self.answers(model, part, limit, decoder), limit)

    def losses(self, model: PyTree, part: str, limit: int | None = None) -> list[float]:
        """Returns the loss of every lane's model on one part of the data: the mean over its evaluation batches."""
        loss = jax.vmap(lambda model, batch: self.problem.loss(model, batch, None)[0], (0, None))
        found = []
        with readable_memory_errors(self.train, "evaluating"):
            for batch in self.problem.eval_batches(part, limit):
                found.append(np.asarray(self._evaluate("loss", loss, model, batch), np.float64))
        return np.mean(found, axis=0).tolist()

    def scores(self, part: str, answers: list[list[PyTree]], limit: int | None = None) -> list[dict[str, float]]:
        """Returns the metrics of every lane, computed from the result of `answers`.

        Raises:
            ValueError: The task's `score` lacks the primary metric, or a fraction lies outside its declared range.
        """
        found = [self.problem.score(part, lane, limit) for lane in answers]
        for metrics in found:
            check_scores(self.problem, metrics)
        return found

    def answers(self, model: PyTree, part: str, limit: int | None = None, decoder: object = None) -> list[list[PyTree]]:
        """Returns every lane's answers to the evaluation batches.

        Returns:
            For each lane, a list with one answer for each batch.
        """
        what, answers = "answer" if decoder is None else f"the answers by {decoder}", []
        with readable_memory_errors(self.train, "evaluating"):
            for batch in self.problem.eval_batches(part, limit):
                found = self._evaluate(what, self._answer(decoder), model, batch)
                answers.append(jax.tree.map(np.asarray, found))
        lanes = range(len(self.train.lanes))
        return [[jax.tree.map(lambda x, n=n: x[n], answer) for answer in answers] for n in lanes]

    def first_answers(self, model: PyTree, lane: int, count: int) -> PyTree:
        """Returns the answers of one lane's model to the first test examples.

        If possible, the program that answers the validation data is used: the examples are repeated to fill its batch.

        Args:
            model: The models of all lanes, as for `evaluate`.
            lane: The index of the lane.
            count: The number of examples. The answers to repeated examples follow.
        """
        batch, like = self.problem.eval_batches("test", count)[0], self.problem.eval_batches("valid", VALIDATED)[0]
        batch = filled(batch, like)
        with readable_memory_errors(self.train, "evaluating"):
            found = self._evaluate("answer", self._answer(), model, batch)
        return jax.tree.map(lambda x: np.asarray(x)[lane], found)

    def _answer(self, decoder: object = None) -> Callable:
        """Returns a function that gives the answers of every lane's model to a batch."""
        answer = self.problem.answer if decoder is None else partial(self.problem.answer, decoder=decoder)
        return jax.vmap(answer, (0, None))

    def _evaluate(self, what: str, function: Callable, model: PyTree, batch: PyTree) -> PyTree:
        """Returns the result of `function(model, batch)`, which is compiled once for each name and shape of a batch."""
        return self._program(what, batch, lambda: jax.jit(function).lower(model, batch))(model, batch)

    def _program(self, what: str, batches: PyTree, lower: Callable[[], Lowered]) -> Compiled:
        """Returns a compiled program. It is lowered and compiled if it neither is yet nor was in the background."""
        if (key := program_key(what, batches)) in self.compiled:
            return self.compiled[key]
        future = self.ahead.pop(key, None)
        if future is not None and what == "train":
            self.lowered()
        program = ahead_result(future) if future is not None and future.done() else None
        if program is None:
            with self._compiling(what, batches):
                program = ahead_result(future) or self._compile(what, lower)
        self.compiled[key] = program
        freed_memory.release()
        return program

    def _compile(self, what: str, lower: Callable[[], Lowered]) -> Compiled:
        lowered = lower()
        if what == "train":
            self.lowered()
        return lowered.compile()

    def _lower_train(self, state: lane.State, steps: Steps) -> Lowered:
        """Traces the training program of a state, or of its shapes."""
        compiler = partial(jax.jit, donate_argnums=0)
        if self.sharding is not None:
            compiler = partial(compiler, out_shardings=(self.sharding.lanes, self.sharding.replicated))
        advance = _advance(self.problem.loss, self.train, steps.shapes)
        return compiler(advance).lower(state, steps.batches, steps.kind, np.int32(0))

    @contextmanager
    def _compiling(self, what: str, batches: PyTree) -> Iterator[None]:
        """Announces that a program is compiled, and records how long it takes."""
        announcement = f"{PROGRAMS.get(what, what)} ({sizes_text(batches, 2 if what == 'train' else 0)})"
        self.announce(announcement)
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        self.compile_seconds += seconds
        self.announced(announcement, seconds)


def _advance(loss: Callable, train: Train, shapes: Sequence[Shapes]) -> Callable:
    """Returns a function that runs several steps of all lanes.

    The number of steps is traced, so that one compiled program serves dispatches of any length up to `DISPATCH`.
    """
    # The inner jit makes JAX trace the step once for both uses below. All lanes share `kind` (in_axes None), so that
    # the switch over shapes stays a switch; a batched index would turn it into a select that computes every branch.
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
