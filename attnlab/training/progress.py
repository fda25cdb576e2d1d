"""What the training loop tells of its progress, and a listener that says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class Progress(Protocol):
    """What a run tells as it goes. Steps count from 0 for each variant; times are in seconds."""

    def waiting(self, what: str) -> AbstractContextManager[Any]:
        """Before the first variant, within a `with`: what is being done. It may be refused, so no line of it stays."""
        ...

    def variant(
        self, name: str, index: int, count: int, total_steps: int, done_steps: int = 0, later_steps: int = 0
    ) -> None:
        """Variant `index` (from 0) of `count` begins, or goes on after `done_steps`; others take `later_steps`."""
        ...

    def compiling(self, what: str) -> None:
        """A program is being compiled; nothing moves meanwhile."""
        ...

    def compiled(self, what: str, seconds: float) -> None:
        """It is compiled."""
        ...

    def advanced(self, step: int, loss: float, steps_per_second: float | None = None) -> None:
        """`step` steps are done; `loss` the mean over lanes that did not diverge. A speed not given is measured."""
        ...

    def evaluated(self, step: int, metrics: Mapping[str, float]) -> None:
        """An evaluation after `step` steps: each metric's mean over lanes that did not diverge."""
        ...

    def saved(self, step: int) -> None:
        """A checkpoint is on disk."""
        ...

    def finished(self) -> None:
        """The variant has its result."""
        ...

    def note(self, text: str) -> None:
        """Anything else that a person should know."""
        ...

    def close(self) -> None:
        """Nothing more will come; the terminal is as before."""
        ...


class Silent:
    """Says nothing: for programs and tests."""

    def waiting(self, what):
        """Nothing."""
        return nullcontext()

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Nothing."""

    def compiling(self, what):
        """Nothing."""

    def compiled(self, what, seconds):
        """Nothing."""

    def advanced(self, step, loss, steps_per_second=None):
        """Nothing."""

    def evaluated(self, step, metrics):
        """Nothing."""

    def saved(self, step):
        """Nothing."""

    def finished(self):
        """Nothing."""

    def note(self, text):
        """Nothing."""

    def close(self):
        """Nothing."""
