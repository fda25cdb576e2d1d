"""Small registries that replace the real ones, and a study that uses them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from attnlab import registry
from attnlab.lab import run
from attnlab.lab.study.study import Experiment, Study
from attnlab.lab.study.variation import over
from attnlab.training.config import Train
from tests.lab.small_study import STUDY


def dot(q, k):
    """Dot product."""


def cosine(q, k):
    """Cosine."""


@dataclass(frozen=True)
class Elu:
    """elu + 1."""


@dataclass(frozen=True)
class Taylor:
    """A series."""

    order: int = 2


@dataclass(frozen=True)
class Mechanism:
    """A mechanism."""


@dataclass(frozen=True)
class Softmax(Mechanism):
    """Softmax attention.

    More about it.
    """

    score: Callable = dot
    block: int | None = None


@dataclass(frozen=True)
class Linear(Mechanism):
    """Linear attention."""

    feature: object = Elu()
    block: int = 64

    def __post_init__(self):
        if self.block < 1:
            raise ValueError(f"block={self.block} must be at least 1")


@dataclass(frozen=True)
class Position:
    """No position."""


@dataclass(frozen=True)
class Rotary(Position):
    """Rotary position."""

    base: float = 10000.0


@dataclass(frozen=True)
class Net:
    """A network."""

    width: int = 64
    heads: int = 4
    hidden: int | None = None
    dropout: float = 0.0
    tied: bool = False
    window: tuple[int, int] = (1, 1)
    norm: Literal["layer", "rms"] = "layer"
    mechanism: Mechanism = Softmax()
    cross: Mechanism | None = None
    position: Position = Position()

    def __post_init__(self):
        if self.width % self.heads:
            raise ValueError(f"model.heads={self.heads} must divide model.width={self.width}")

    def create(self, key, shape):
        """Creates nothing."""


@dataclass(frozen=True)
class Copy:
    """Copy the input."""

    languages: tuple[str, ...] = ("en", "de")
    train: str = ""

    def load(self):
        """Loads nothing."""


@dataclass(frozen=True)
class Sort:
    """Sort the input."""

    length: int = 10
    limit: int | str = 3

    def load(self):
        """Loads nothing."""


@dataclass(frozen=True)
class Mine(Mechanism):
    """A user-defined mechanism."""

    strength: float = 1.0


@pytest.fixture
def toy(monkeypatch):
    """Returns fake registries as `toy.tables`, and as `toy.study` a study of softmax against linear."""
    tables: dict[str, dict[str, Any]] = {
        "MECHANISMS": {"softmax": Softmax(), "softmax-blocks": Softmax(block=8), "linear": Linear()},
        "PATTERNS": {},
        "ATTENTIONS": {},
        "SCALINGS": {},
        "POSITIONS": {"none": Position(), "rotary": Rotary()},
        "MODELS": {"net": Net()},
        "TASKS": {"copy": Copy(), "sort": Sort()},
        "FEATURES": {"elu+1": Elu(), "taylor": Taylor()},
        "SCORES": {"dot": dot, "cosine": cosine},
        "UNITS": {},
        "DECODERS": {},
    }
    monkeypatch.setattr(registry, "table", tables.__getitem__)
    base = Experiment(Copy(), Net(), Train(steps=100, seeds=2))
    vary = over("model.mechanism", softmax=Softmax(), linear=Linear(block=32))
    return SimpleNamespace(
        **{kind.__name__: kind for kind in (Elu, Taylor, Softmax, Linear, Rotary, Net, Copy, Sort, Mine)},
        dot=dot,
        cosine=cosine,
        tables=tables,
        base=base,
        study=Study(base, vary, "which?", {"train.steps": 10}, "toy"),
        vary=lambda path, **values: replace(Study(base), vary=over(path, **values)),
    )


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Returns the folder and the results of a finished study. Tests that change files use a copy."""
    out = tmp_path_factory.mktemp("runs")
    return out, run(STUDY, out, command="attnlab run small.py")


@pytest.fixture
def untrained(monkeypatch):
    """Writes the description of each run instead of training."""
    from attnlab.lab import launch
    from attnlab.lab.execution.variant import write_description

    def in_turn(plans, *rest):
        for plan in plans:
            plan.folder.path.mkdir(parents=True, exist_ok=True)
            write_description(plan, "")

    monkeypatch.setattr(launch, "run_in_order", in_turn)
    monkeypatch.setattr(launch, "result", lambda plan: {"diverged": []})
    monkeypatch.setattr(launch, "report", lambda folder: folder)
