"""What a study needs next is computed while a variant trains: compiled programs, and the costs for the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial

import jax

from attnlab.lab.planning.ledger import Costs, costs
from attnlab.lab.planning.plan import Plan
from attnlab.system.background import Background
from attnlab.system.cores import cores
from attnlab.training.progress import Progress
from attnlab.training.trainer import Trainer


class Ahead:
    """The trainers of a study's variants, which compile in the background while another program runs.

    A training program leaves a CPU partly idle. While it runs, the programs that evaluate its variant and those of the
    next variant are traced and compiled, and the costs of its variant are counted. With a single core, or on an
    accelerator, whose memory a compilation may use, nothing runs in the background.

    Args:
        plans: the plans of the variants that this process trains one after the other. With several processes, which
            variant is next is not known, and the sequence is empty.
        progress: the `Progress` listener of the trainers.
    """

    def __init__(self, plans: Sequence[Plan], progress: Progress):
        self._plans, self._progress = plans, progress
        self._trainers: dict[int, Trainer] = {}
        self._costs: dict[int, Future[Costs]] = {}
        self._background = Background() if len(cores()) > 1 and jax.default_backend() == "cpu" else None

    def trainer(self, plan: Plan) -> Trainer:
        """Return the trainer of a variant, whose programs may be compiled already."""
        trainer = self._trainers.pop(plan.order, None) or self._create(plan)
        trainer.lowered = partial(self._begin, plan, trainer)
        return trainer

    def costs(self, plan: Plan) -> Costs:
        """Return the costs of a variant."""
        try:
            return self._costs.pop(plan.order).result()
        except (KeyError, CancelledError):
            return costs(plan.experiment, plan.problem)

    def close(self, wait: bool = True) -> None:
        """End the background thread. `wait` is whether to wait for the computation that has begun."""
        if self._background is not None:
            self._background.close(wait)

    def _begin(self, plan: Plan, trainer: Trainer) -> None:
        """Begin what can be done while the variant trains."""
        trainer.lowered = lambda: None
        if self._background is None:
            return
        # What fails here fails again when it is needed, and is reported then.
        with suppress(Exception):
            trainer.compile_ahead(self._background, training=False)
        self._costs[plan.order] = self._background.submit(partial(costs, plan.experiment, plan.problem))
        if (following := self._following(plan)) is not None:
            trainer = self._trainers[following.order] = self._create(following)
            with suppress(Exception):
                trainer.compile_ahead(self._background, training=True)

    def _following(self, plan: Plan) -> Plan | None:
        """Return the next variant that is not finished."""
        later = (each for each in self._plans if each.order > plan.order and each.done is None)
        return next((each for each in later if not each.folder.file("result").exists()), None)

    def _create(self, plan: Plan) -> Trainer:
        create: Callable = lambda key: plan.experiment.model.create(key, plan.problem.shape)
        return Trainer(
            create, plan.problem, plan.experiment.train, announce=self._progress.compiling,
            announced=self._progress.compiled,
        )  # fmt: skip
