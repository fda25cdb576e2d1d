"""The input that a worker process reads as JSON from its standard input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import jax

from attnlab import registry
from attnlab.lab.planning.plan import Plan
from attnlab.lab.study.load import ADDED
from attnlab.lab.study.study import Budget, Match
from attnlab.lab.study.user_code import tags, user_defined
from attnlab.system import settings

# The jax settings that a worker receives, because they may have been set by a call: platform, precision, randomness.
JAX = (
    "jax_platforms", "jax_default_matmul_precision", "jax_numpy_dtype_promotion", "jax_debug_nans",
    "jax_compilation_cache_dir", "jax_enable_compilation_cache", "jax_persistent_cache_min_compile_time_secs",
    *settings.NUMBERS,
)  # fmt: skip


class WorkerInput(TypedDict):
    """What a worker needs to train the variants of a study."""

    jax: dict[str, str | int | float | bool | None]
    """The jax settings by name."""
    name: str
    """The name of the study."""
    question: str
    """The question of the study."""
    match: Match | None
    """What the variants of the study are matched by."""
    budget: Budget
    """What the variants of the study may spend."""
    experiments: dict[str, dict]
    """The experiment of each variant, as JSON (`serialize.write`)."""
    sources: list[str]
    """The experiment files that are executed first."""
    home: str
    """The folder of the study."""
    shared: str
    """A folder that the workers of this command share, to reserve variants."""
    command: str
    """The command that repeats the run."""
    workers: int
    """The number of workers."""
    quick: bool
    """Whether the run is a preview."""


def worker_input(plans: Sequence[Plan], workers: int, home: Path, shared: str, command: str) -> WorkerInput:
    """Return the input of the workers that share these plans. Raises ValueError as `sources` does.

    Args:
        plans: The plans of all variants.
        workers: The number of workers.
        home: The folder of the study.
        shared: The folder in which workers reserve variants.
        command: The command that repeats the run.
    """
    study = plans[0].study
    return {
        "jax": {name: settings.value(jax.config, name, None) for name in JAX if name in jax.config.values},
        "name": study.name,
        "question": study.question,
        "match": study.match,
        "budget": study.budget,
        "experiments": {plan.variant: plan.written for plan in plans},
        "sources": sources(plans),
        "home": str(home),
        "shared": shared,
        "command": command,
        "workers": workers,
        "quick": plans[0].quick,
    }


def sources(plans: Sequence[Plan]) -> list[str]:
    """Return the experiment files that added the registry entries which the experiments use.

    Args:
        plans: the plans of all variants.

    Raises:
        ValueError: if an experiment uses your own class that was registered elsewhere, for example in a notebook,
            because another process cannot import it.
    """
    files: dict[str, None] = {}
    mine = {tag: kind for plan in plans for tag, kind in user_defined(plan.written).items()}
    for place, name in dict.fromkeys(tag for plan in plans for tag in tags(plan.written)):
        value, file = ADDED.get((place, name), (None, None))
        if file is not None and value is registry.table(place)[name]:
            files[str(file)] = None
        elif (place, name) in mine:
            raise ValueError(
                f"workers: {name!r} of attnlab.{place} is defined in {mine[place, name].__module__}, which worker "
                "processes do not import; set workers=1, or define it in the experiment file"
            )
    return list(files)
