"""Inspect a trained run: every attention map of one example, and how their statistics developed during training."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from attnlab.analysis import flow, map_statistics
from attnlab.analysis.maps import attention_maps
from attnlab.analysis.scores import scores, softmax
from attnlab.analysis.totals import denominators
from attnlab.data.io.files import DataError
from attnlab.lab.study.values import text as words
from attnlab.lab.trained.decoding import DivergedError
from attnlab.lab.trained.example import TeacherForcedExample, attentions, axis, check, forced, observed
from attnlab.lab.trained.history import history
from attnlab.lab.trained.load import Step, Trained, trained, unfinished
from attnlab.mechanisms import Linear, Softmax
from attnlab.models.config import StackConfig
from attnlab.pattern import period
from attnlab.tasks.base.text_interface import Batch

EXAMPLES = 32  # validation examples on which loss, gradient and scores are measured at every checkpoint


@runtime_checkable
class HeadWidthConfig(Protocol):
    """A configuration of a model whose heads have a width of their own."""

    head_width: int


def inspect(run: str | Path, text: str, other: str | Path | None = None, step: Step = None) -> dict[str, Any]:
    """Inspect the trained model of a run on one input.

    Args:
        run: The run folder.
        text: The input.
        other: Another run folder whose maps are compared with those of this run. None compares nothing.
        step: Which checkpoint to load, as in `load`.

    Returns:
        A dict with "answer", "step", "steps" (the planned number), "notes", "examples", and

        - "attentions": a dict by name ("encoder", "decoder", "cross", and "query_attention" for DETR's self-attention
          of queries). Each has "mechanism"; "mechanisms" (that of each layer); "rows" and "columns" (symbols); "rank"
          (the largest possible); "entropy" (the largest possible, in nats); "softmax" (whether the mechanism is
          softmax); "divides" (whether it divides by a sum that may approach zero); "statistics", `[L][H]` of {"rank",
          "entropy", "relative_entropy", "reach", "from_softmax", "empty", "signed"}; and "layers", the maps
          `[L][H][T][S]`. "relative_entropy" is a row's entropy divided by its largest possible entropy, mean over
          rows. "from_softmax" is the total variation distance between the map and the softmax of the same queries and
          keys. "empty" is the number of rows without weight. If "divides" is true, the statistics also have
          "least_total", the smallest absolute value of such a sum.
        - "training": for every checkpoint in the folder, the oldest first, {"step", "loss", "scores" (their variance,
          by name and layer), "parts" (norms of parameters and gradient), "statistics" (by name: means over heads, by
          layer)}. All but "statistics" are measured on the first validation examples; "examples" is their number.
        - "distance": the distance from the run `other` on the same example, {"run", "notes", "attentions": by name
          {"heads": [L][H], "mean": [L]}}, or None.

    Raises:
        DataError: The text has symbols that were not seen in training, or the vocabularies of the two runs differ.
        DivergedError: The model's numbers are not finite.
        ValueError: The model has no attention, or the maps of `other` have different shapes.
        FolderError, CheckpointError: As in `trained`.
    """
    found = trained(run, step)
    check(run, found)
    example = forced(found, text)
    attentions = _attentions(found, example)
    batch = found.problem.eval_batches("valid", EXAMPLES)[0]
    training, notes = _training(run, found, example, batch)
    return {
        "answer": example.answer,
        "step": found.step,
        "steps": found.experiment.train.steps,
        "notes": [*unfinished(run, found, training[-1]["step"]), *notes, *_repeated(found.experiment.model)],
        "examples": len(next(iter(batch.values()))),
        "attentions": attentions,
        "training": training,
        "distance": None if other is None else _distance(run, found, example, other),
    }


def _repeated(config: object) -> list[str]:
    """Return a note if the layers have different numbers of heads, so that `attention_maps` repeats some."""
    if not isinstance(config, StackConfig):
        return []
    counts = [layer.mechanism_heads or config.heads for layer in period(config.attention)]
    if len(set(counts)) < 2:
        return []
    listed = " and ".join(map(str, counts))
    return [f"layers have {listed} heads in turn; each head of a layer with fewer is listed several times"]


def _attentions(found: Trained, example: TeacherForcedExample) -> dict[str, Any]:
    """Compute every map of the tested model, with its statistics."""
    seen, scored = (observed(found.model, example, look) for look in (attention_maps, scores))
    divisors = denominators(found.experiment.model, found.model, *example.inputs)
    if not all(np.isfinite(x).all() for x in seen.values()):
        raise DivergedError("the model returned non-finite values for this input")
    described = {}
    for name, layers in seen.items():
        rows, columns = (axis(*side, found.model) for side in zip(example.axes[name], layers.shape[-2:], strict=True))
        mechanism = attentions(found.experiment.model)[name]
        kinds = period(mechanism)
        described[name] = {
            "mechanism": words(mechanism),
            "mechanisms": [words(kinds[n % len(kinds)]) for n in range(len(layers))],
            "rows": rows,
            "columns": columns,
            "rank": _largest(found, name, *layers.shape[-2:]),
            "entropy": float(map_statistics.mean(map_statistics.max_entropy(scored[name][0, 0] != -np.inf))),
            "softmax": type(mechanism) is Softmax,
            "divides": name in divisors,
            "statistics": _heads(_statistics(layers, scored[name]) | _least(divisors.get(name), scored[name])),
            "layers": np.round(layers, 4).tolist(),
        }
    return described


def _largest(found: Trained, name: str, T: int, S: int) -> int:
    """Return the largest possible rank of a map. For a sum over all keys it is at most the number of features."""
    config = found.experiment.model
    mechanism = config.attentions[name]
    # A causal map is triangular and can have full rank.
    bounded = isinstance(mechanism, Linear) and name != "decoder"
    if not bounded:
        return min(T, S)
    width = config.head_width if isinstance(config, HeadWidthConfig) else config.width // config.heads
    return min(T, S, mechanism.feature.dim(width))


def _statistics(layers: np.ndarray, scored: np.ndarray) -> dict[str, Any]:
    """Compute the statistics `[L H]` by name, for maps `[L H T S]` with their scores."""
    most, entropy = map_statistics.max_entropy(scored != -np.inf), map_statistics.entropy(layers)
    # It is undefined for a row that sees only one key.
    relative_entropy = entropy / np.where(most > 0, most, np.nan)
    from_softmax = map_statistics.distance(layers, softmax(scored))
    empty = np.isnan(entropy)
    return {
        "rank": map_statistics.effective_rank(layers),
        "entropy": map_statistics.mean(entropy),
        "relative_entropy": map_statistics.mean(relative_entropy),
        "reach": map_statistics.mean(map_statistics.attention_distance(layers)),
        "from_softmax": map_statistics.mean(np.where(np.isnan(most), np.nan, from_softmax)),
        "empty": empty.sum(axis=-1),
        "signed": (layers < 0).any(axis=(-2, -1)),
    }


def _least(divisors: Any, scored: np.ndarray) -> dict[str, Any]:
    """Return {"least_total": [L H]}, the least absolute divisor of rows that see a key, or {} without divisors."""
    if divisors is None:
        return {}
    sees = (scored != -np.inf).any(axis=-1)
    sizes = np.abs(np.asarray(divisors, np.float64)[:, :, : scored.shape[-2]])
    return {"least_total": np.min(sizes, axis=-1, initial=np.inf, where=sees)}


def _heads(statistics: dict[str, np.ndarray]) -> list[list[dict[str, Any]]]:
    """Convert statistics to nested lists `[L][H]` of {name: number}."""
    L, H = statistics["rank"].shape
    return [[{name: x[n, h].item() for name, x in statistics.items()} for h in range(H)] for n in range(L)]


def _training(
    run: str | Path, found: Trained, example: TeacherForcedExample, batch: Batch
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure every usable checkpoint, the oldest first, and list those that could not be used."""
    problem, rows, notes = found.problem, [], []
    for checkpoint in history(run, found):
        if checkpoint.model is None:
            notes.append(f"skipped: {checkpoint.trouble}")
            continue
        loss, parts = flow.gradient(problem.loss, checkpoint.model, batch)
        seen, scored = (observed(checkpoint.model, example, look) for look in (attention_maps, scores))
        rows.append({
            "step": checkpoint.step,
            "loss": loss,
            "scores": flow.variances(checkpoint.model, *problem.model_inputs(batch)),
            "parts": parts,
            "statistics": {name: _layers(_statistics(layers, scored[name])) for name, layers in seen.items()},
        })  # fmt: skip
    return rows[::-1], notes


def _layers(statistics: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """Average the statistics over heads, by layer."""
    return {
        name: map_statistics.mean(statistics[name]).tolist()
        for name in ("rank", "entropy", "relative_entropy", "reach", "from_softmax")
    }


def _distance(run: str | Path, found: Trained, example: TeacherForcedExample, other: str | Path) -> dict[str, Any]:
    """Compute the distance between the maps of this run and of another run on the same example."""
    second = trained(other)
    marks = [each.problem.vocabulary.get("source_marks", "none") for each in (found, second)]
    if marks[0] != marks[1] and type(found.problem.shape) is type(second.problem.shape):
        raise ValueError(f"--other {other} has source_marks={marks[1]}, but {run} has source_marks={marks[0]}")
    if found.problem.shape != second.problem.shape:
        own, others = _differing(found.problem.shape, second.problem.shape)
        raise ValueError(f"--other {other} was trained on {others}, but {run} on {own}")
    # Maps of the same ids are comparable only if the ids mean the same symbols.
    if found.problem.vocabulary != second.problem.vocabulary:
        raise DataError(f"--other {other} and {run} have different vocabularies: the same ids mean different symbols")
    check(other, second)
    ours, theirs = (observed(each.model, example) for each in (found, second))
    compared, notes = {}, []
    for name in dict.fromkeys([*ours, *theirs]):
        sizes = [" × ".join(map(str, x[name].shape[:2])) if name in x else "none" for x in (ours, theirs)]
        if sizes[0] != sizes[1]:
            notes.append(f"{name} is not compared: layers × heads are {sizes[0]} here and {sizes[1]} in the other run")
            continue
        between = lambda a, b: map_statistics.mean(map_statistics.distance(a, b)).tolist()
        a, b = ours[name], theirs[name]
        compared[name] = {"heads": between(a, b), "mean": between(a.mean(axis=1), b.mean(axis=1))}
    if not compared:
        raise ValueError(f"--other {other} has no maps of the same shape as {run}: {'; '.join(notes)}")
    return {"run": named(other), "notes": notes, "attentions": compared}


def _differing(*shapes: Any) -> list[str]:
    """Describe each of two shapes by the fields in which they differ."""
    one, other = map(vars, shapes)
    if set(one) != set(other):
        return [type(shape).__name__.lower() for shape in shapes]
    names = [name for name in one if one[name] != other[name]]
    return [", ".join(f"{name}={values[name]}" for name in names) for values in (one, other)]


def named(run: str | Path) -> str:
    """Return "study/run", the name of a run with that of its study."""
    folder = Path(run).resolve()
    return f"{folder.parent.name}/{folder.name}"
