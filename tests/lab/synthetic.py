"""Writes run folders with results from formulas and seeded noise, to draw a page without training."""

from pathlib import Path
from typing import Any

import numpy as np

from attnlab.lab.results.declared import entries
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.statistics import summary
from tests.lab.metrics import declared

LANGUAGES = (
    *("ar", "bn", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi", "hu", "id", "it"),
    *("ja", "ko", "nb", "nl", "pl", "pt", "ro", "ru", "sv", "th", "tr", "uk", "vi", "zh"),
)
SOURCES = {"softmax": "५ मार्च २०२४", "linear": "الثلاثاء، ٥ مارس ٢٠٢٤", "delta": "2024年3月5日"}
TARGET = [*"2024-03-05", "⏹"]


def write_study(home: Path, variants: dict[str, dict[str, Any]] | None = None, **more: Any) -> Path:
    """Writes a finished study of several variants to `home`. `variants` has the arguments of `write_run` by variant."""
    if variants is None:
        variants = {"softmax": {"mean": 0.991}, "linear": {"mean": 0.969, "offset": 1.3}}
    for n, (variant, changes) in enumerate(variants.items()):
        write_run(home / variant, variant, salt=n, **{"order": n, **more, **changes})
    return home


def rewrite(run: RunFolder, experiment: dict[str, Any]) -> None:
    """Replaces `experiment.json` and renews the checksums of the other files."""
    kept = {name: found for name in ("environment", "result", "maps") if (found := run.read(name)) is not None}
    rows = run.metrics()
    run.write("experiment", experiment)
    for name, found in kept.items():
        run.write(name, found)
    run.file("metrics").unlink()
    run.append_metrics(rows)


def retell(run: RunFolder, metric: str, times: float) -> None:
    """Replaces the primary metric of a finished run by one where lower is better. Values are multiplied by `times`."""
    named = lambda key: key.replace("exact_match", metric)
    result, rows = run.read("result") or {}, run.metrics()
    scaled = {
        named(key): summary(times * np.array(found["values"])) if "exact_match" in key else found
        for key, found in result["metrics"].items()
    }
    run.write(
        "result",
        result | {"metrics": scaled, "declared": entries(map(declared, scaled)), "metric": metric, "higher": False},
    )
    run.file("metrics").unlink()
    scale = lambda key, value: times * value if key == "valid.exact_match" else value
    run.append_metrics([{named(key): scale(key, value) for key, value in row.items()} for row in rows])


def write_run(
    path: Path,
    variant: str,
    mean: float = 0.98,
    offset: float = 1.0,
    seeds: tuple[int, ...] = (0, 1, 2),
    steps: int = 1500,
    finished: bool = True,
    quick: bool = False,
    spread: float = 0.003,
    diverged: tuple[int, ...] = (),
    groups: tuple[str, ...] = LANGUAGES,
    question: str = "Does softmax attention read human-written dates better than linear attention?",
    salt: int = 0,
    order: int | None = None,
    margin: float | None = None,
    rates: tuple[float, ...] = (),
    costs: float = 1.0,
    examples: int = 3,
    published: float | None = None,
    band: tuple | None = None,
) -> RunFolder:
    """Writes a run of one variant, whose lanes end near `mean` after a time proportional to `offset`.

    Seeds in `diverged` diverge. The first of several `rates` is the chosen one, and the others are worse. The costs are
    `costs` times the usual ones.
    """
    run, random = RunFolder(path), np.random.default_rng(salt)
    planned = ({} if order is None else {"order": order, "margin": margin}) | {"published": published, "band": band}
    run.write("experiment", experiment(variant, seeds, steps, quick, question) | planned)
    run.write("environment", ENVIRONMENT)
    run.append_metrics(_rows(random, mean, offset, seeds, steps if finished else steps // 4, diverged))
    if finished:
        alive = tuple(seed for seed in seeds if seed not in diverged)
        found = result(random, mean, spread, alive, steps, groups, diverged)
        for name in ("flops", "state_bytes", "seconds", "seconds_per_step", "memory_bytes"):
            found[name] *= costs
        if rates:
            tuned = _by_rate(random, mean, spread, seeds, rates)
            found |= {**tuned, "diverged": [*found["diverged"], *tuned["diverged"]]}
        run.write("result", found)
        sources = [SOURCES.get(variant, "5 de março de 2024"), "5.3.24", "March 5th"][:examples]
        run.write("maps", {"kind": "cross", "examples": [_maps(random, source, offset) for source in sources]})
    return run


VERSIONS = {"attnlab": "0.1.0", "python": "3.12.0", "jax": "0.10.2", "flax": "0.12.8", "numpy": "2.3.1"}
ENVIRONMENT = {**VERSIONS, "platform": "cpu", "device": "cpu", "cores": 2, "machine": "Linux x86_64"}


def experiment(variant: str, seeds: tuple[int, ...], steps: int, quick: bool, question: str) -> dict[str, Any]:
    mechanism = {"registry": "MECHANISMS", "name": variant, "fields": {}}
    model = {
        "registry": "MODELS",
        "name": "transformer",
        "fields": {"width": 64, "heads": 4, "mechanism": mechanism},
    }
    train = {"steps": steps, "batch_size": 64, "learning_rate": 0.003, "seeds": list(seeds)}
    task = {"registry": "TASKS", "name": "dates", "fields": {"seed": 0, "buckets": 3}}
    return {
        "study": "dates",
        "question": question,
        "variant": variant,
        "quick": quick,
        "command": "attnlab run experiments/dates.py",
        "experiment": {"task": task, "model": model, "train": train},
    }


def result(random, mean, spread, seeds, steps, groups, diverged) -> dict[str, Any]:
    metrics = {}
    if seeds:
        values = np.clip(mean + spread * random.normal(size=len(seeds)), 0, 1)
        metrics = {"exact_match": summary(values), "loss": summary(0.9 * (1 - values) + 0.001)}
        for group in groups:
            share = 1 - (1 - values) * random.gamma(2, 0.5)
            noise = spread * random.normal(size=len(seeds))
            metrics[f"exact_match.{group}"] = summary(np.clip(share + noise, 0, 1))
    return {
        "metrics": metrics,
        "declared": entries(map(declared, ["loss", *metrics])),
        "metric": "exact_match",
        "higher": True,
        "seeds": list(seeds),
        "learning_rate": 0.003,
        "learning_rates": [0.003],
        "diverged": [{"seed": seed, "learning_rate": 0.003, "step": steps // 2} for seed in diverged],
        "parameters": 312_456,
        "flops": 1.62e9,
        "state_bytes": 24_576,
        "steps": steps,
        "seconds": 143.2,
        "compile_seconds": 21.4,
        "seconds_per_step": 0.0953,
        "peak_memory": 1_430_000_000,
        "memory_bytes": 48_500_000,
        "fingerprint": "9f2c" * 16,
    }


def _by_rate(random, mean, spread, seeds, rates) -> dict[str, Any]:
    """Returns validation values at each rate, which decrease with the distance from the first rate.

    The last seed diverges at rates that differ from the first by a factor of ten or more.
    """
    entries, lost = [], []
    for rate in rates:
        away = abs(np.log10(rate / rates[0]))
        values = np.clip(mean - 0.1 * away**2 + spread * random.normal(size=len(seeds)), 0, 1).tolist()
        if away >= 1:
            values[-1] = None
            lost.append({"seed": seeds[-1], "learning_rate": rate, "step": 100})
        entries.append({"learning_rate": rate, "values": values})
    chosen = {"learning_rates": list(rates), "learning_rate": rates[0], "contenders": rates[:2]}
    return {**chosen, "by_rate": entries, "diverged": lost}


def _rows(random, mean, offset, seeds, last, diverged) -> list[dict[str, Any]]:
    tempo = {seed: offset * np.exp(0.1 * random.normal()) for seed in seeds}
    rows = []
    for step in range(10, last + 1, 10):
        for seed in seeds:
            dead = seed in diverged and step > last // 2
            loss = (2.9 * np.exp(-step / (150 * tempo[seed])) + 1 - mean) * np.exp(0.08 * random.normal())
            row = {"step": step, "seed": seed, "learning_rate": 0.003, "seconds": step * 0.1}
            # A diverged lane no longer changes. Its recorded values may be finite.
            row["loss"] = 9.0 if dead else loss
            if step % 250 == 0:
                reached = mean / (1 + np.exp(-(step - 500 * tempo[seed]) / 120))
                row["valid.exact_match"] = 0.0 if dead else reached
            rows.append(row)
    return rows


def _maps(random, source: str, offset: float) -> dict[str, Any]:
    """Returns maps of heads that attend along the diagonal, with different sharpness."""
    columns, rows = np.arange(len(source)), np.linspace(len(source) - 1, 0, len(TARGET))
    layers = []
    for sharpness in (0.3, 1.0):
        heads = []
        for _ in range(4):
            width = offset * (1 + 2 * random.random()) / sharpness
            weights = np.exp(-(((columns - rows[:, None]) / width) ** 2)) + 0.02 * random.random(len(columns))
            heads.append((weights / weights.sum(1, keepdims=True)).round(4))
        layers.append(np.stack(heads))
    return {"source": list(source), "target": TARGET, "layers": np.stack(layers)}
