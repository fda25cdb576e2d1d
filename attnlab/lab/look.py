"""One example through a trained model: its answer, and where its attention went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.maps import maps
from attnlab.data.vocabulary import BEGIN, PAD
from attnlab.lab.loading import trained
from attnlab.tasks.base import Batch, Pairs, Problem


def sample(run: str | Path, text: str) -> dict[str, Any]:
    """What the trained model of a run makes of `text`: {"answer", "source", "target", "map" [T][S]}.

    The map is the cross-attention of the last layer, the mean over its heads; where no sequence is read by another
    there is none. Raises DataError for symbols never seen.
    """
    found = trained(run)
    batch = found.problem.ask(text)
    answer = jax.jit(found.problem.answer)(found.model, batch)
    if not isinstance(found.problem.shape, Pairs):
        return {"answer": found.problem.tell(answer), **found.problem.tokens(batch), "map": None}
    seen = look(found.experiment.model, found.model, found.problem, batch, answer)
    told = {"answer": found.problem.tell(answer)}
    if seen is None:
        return {**told, **found.problem.tokens(batch), "map": None}
    last = np.mean(np.asarray(seen["layers"][-1]), axis=0)
    return {**told, "source": seen["source"], "target": seen["target"], "map": last.tolist()}


def look(config: Any, model: Any, problem: Problem, batch: Batch, answer: Batch) -> dict[str, Any] | None:
    """The cross-attention of row 0, teacher-forced on the model's own answer: what `maps.json` holds.

    None where the model has none.
    """
    source, target = np.asarray(batch["source"])[0], np.asarray(answer["tokens"])[0]
    given = np.concatenate([[BEGIN], target[:-1]]).astype(np.int32)
    seen = maps(config, model, problem.shape, *map(jnp.asarray, (source, given, source != PAD, target != PAD)))["cross"]
    if seen is None:
        return None
    symbols = problem.tokens({"source": source[None], "target": target[None]})
    T, S = len(symbols["target"]), len(symbols["source"])
    layers = np.round(np.asarray(seen, np.float64)[:, :, :T, :S], 4)
    return {"kind": "cross", **symbols, "layers": layers.tolist()}
