"""The events that the training loop reports, and a listener that ignores them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from attnlab.training.problem import Metric


class Progress(Protocol):
    """A listener for the events of a run. A subclass ignores the events whose methods it does not define.

    Steps count from 0 for each variant. Times are in seconds.
    """

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Returns a context in which the preparation `what` is shown, before the first variant.

        The line is transient, because the preparation may end with a refusal.
        """
        return nullcontext()

    def variant(
        self, name: str, index: int, count: int, total_steps: int, done_steps: int = 0, later_steps: int = 0
    ) -> None:
        """A variant begins or resumes. The events that follow belong to it, until it has finished or failed.

        Args:
            name: The name of the variant.
            index: Its index, from 0.
            count: The number of variants.
            total_steps: The steps of this variant.
            done_steps: The steps that were done in an earlier run.
            later_steps: The steps of the variants that follow.
        """

    def compiling(self, what: str) -> None:
        """The compilation of the program `what` begins. Training pauses until it ends."""

    def compiled(self, what: str, seconds: float) -> None:
        """The compilation of the program `what` ended after `seconds`."""

    def advanced(self, step: int, loss: float, steps_per_second: float | None = None) -> None:
        """Training reached a step.

        Args:
            step: The number of steps done.
            loss: The mean loss over the lanes that did not diverge.
            steps_per_second: The speed. If None, the listener measures it.
        """

    def evaluated(self, step: int, metrics: Mapping[Metric, float]) -> None:
        """An evaluation after `step` steps ended. `metrics` are means over the lanes that did not diverge."""

    def saved(self, step: int) -> None:
        """The checkpoint of `step` is on disk."""

    def finished(self) -> None:
        """The variant has its result."""

    def failed(self, variant: str, reason: str) -> None:
        """A variant ended without a result, and the next one may begin."""

    def note(self, text: str) -> None:
        """A message for the user that is none of the other events."""

    def close(self) -> None:
        """The run ends. The terminal must be restored to its previous state."""


class Silent(Progress):
    """A listener that ignores all events, for programs and tests."""
