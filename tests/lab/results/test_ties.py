"""If learning rates share the best primary metric, the loss decides between them, and a line reports it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.lab import run
from attnlab.lab.reporting import report
from attnlab.lab.results.declared import entries
from attnlab.lab.results.ties import tie
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Experiment, Study
from attnlab.models import Transformer
from attnlab.tasks import Parallel
from attnlab.training.config import Train
from attnlab.training.trainer import Trainer
from tests.lab.metrics import declared
from tests.lab.noted import Noted
from tests.lab.synthetic import write_study

RATES = [1e-6, 1e-2]


def record(values, losses=None, taken=1e-2, metric="bleu", higher=True):
    """Returns a result as it is written to disk. `values` and `losses` are lists by learning rate."""
    by_rate = [{"learning_rate": rate, "values": column} for rate, column in zip(RATES, values, strict=True)]
    for entry, column in zip(by_rate, losses or [], strict=False):
        entry["losses"] = column
    told = {"metric": metric, "higher": higher, "declared": entries([declared(metric)])}
    return {**told, "learning_rate": taken, "metrics": {metric: {}}, "by_rate": by_rate}


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (record([[0.1, 0.2], [0.2, 0.2]]), ""),
        (record([[0.0], [0.0]]) | {"by_rate": []}, ""),
        (record([[0.0], [0.0]]) | {"metrics": {}}, ""),  # every lane diverged
        (
            record([[0.0, 0.0], [0.0, 0.0]], [[5.0, 6.0], [0.25, 0.75]]),
            "the learning rates 1e-06 and 0.01 have the same bleu on validation (0.0); 0.01 is reported because it "
            "has the lowest loss (1e-06: 5.500, 0.01: 0.5000)",
        ),
        (
            record([[1.0], [1.0]], [[2.0], [2.0]], 1e-6, "word_error_rate", False),
            "the learning rates 1e-06 and 0.01 have the same word error rate on validation (100.0%), and the lowest "
            "loss is shared too (1e-06: 2.000, 0.01: 2.000); the first of them, 1e-06, is reported",
        ),
        (
            record([[0.0], [0.0]], None, 1e-6),
            "the learning rates 1e-06 and 0.01 have the same bleu on validation (0.0); the first of them, 1e-06, "
            "is reported, although it may not be the best",
        ),
        (
            record([[None], [None]], [[3.0], [1.0]], metric="perplexity", higher=False),
            "the learning rates 1e-06 and 0.01 have no finite perplexity; 0.01 is reported because it has the lowest "
            "loss (1e-06: 3.000, 0.01: 1.000)",
        ),
    ],
)
def test_a_record_lists_equal_rates_and_the_criterion(result, line):
    assert tie(result) == line


def test_the_page_reports_ties_of_older_records(tmp_path):
    home = write_study(tmp_path / "study", {"softmax": {"mean": 0.9}})
    folder = RunFolder(home / "softmax")
    found = folder.read("result")
    equal = record([[0.0] * 3, [0.0] * 3], taken=found["learning_rate"])["by_rate"]
    folder.write("result", found | {"by_rate": equal, "learning_rates": RATES})
    assert "the learning rates 1e-06 and 0.01 have the same exact match on validation" in report(home).read_text()


class Numbers:
    """Data of two batches of numbers. The loss is the mean of a batch times the model, which is one number."""

    def eval_batches(self, part, limit=None):
        return [{"x": np.array([1.0, 2.0], np.float32)}, {"x": np.array([3.0, 6.0], np.float32)}]

    def loss(self, model, batch, key):
        return model * jnp.mean(batch["x"]), {}


def test_the_loss_of_a_lane_is_the_mean_over_batches():
    trainer = Trainer(lambda key: jax.random.normal(key), Numbers(), Train(seeds=2))
    # The means of the batches are 1.5 and 4.5, so the mean over batches is 3.
    assert trainer.losses(jnp.array([1.0, 10.0]), "valid") == [3.0, 30.0]


WORDS = {"rot": "red", "grün": "green", "blau": "blue", "gelb": "yellow", "weiß": "white", "schwarz": "black"}


def words_of_colours(folder, **fields):
    """Returns a study with two learning rates on pairs of single words. With the first rate it learns nothing."""
    for part in ("train", "valid", "test"):
        rows = [f"{source}\t{target}\n" for source, target in WORDS.items()]
        (folder / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")
    files = {part: str(folder / f"{part}.tsv") for part in ("train", "valid", "test")}
    return Study(
        Experiment(
            task=Parallel(**files, buckets=1, **fields),
            model=Transformer(width=32, heads=2, layers=1, dropout=0.0),
            train=Train(
                steps=80, batch_size=12, learning_rate=tuple(RATES), warmup=8, seeds=1, evaluate_every=80, save_every=80
            ),
        ),
        name="colours",
    )


def test_pairs_of_single_words_select_the_rate_that_learns(tmp_path):
    progress = Noted()
    run(words_of_colours(tmp_path), tmp_path, progress=progress)
    found = RunFolder(tmp_path / "colours" / "base").read("result")
    assert (found["metric"], found["learning_rate"]) == ("exact_match", 1e-2)
    assert found["metrics"]["exact_match"]["values"] == [1.0]
    assert any("primary metric: exact_match" in note for note in progress.notes)
    # The scores were not equal, so no loss was computed.
    assert not [note for note in progress.notes if "the learning rates" in note]
    assert "losses" not in found["by_rate"][0]


def test_the_loss_decides_between_rates_with_equal_scores(tmp_path, monkeypatch):
    # Every answer scores 0, as single words did with BLEU-4.
    monkeypatch.setattr(
        "attnlab.tasks.base.primary_metric.PrimaryMetric.measure", lambda *texts: {"chrf": 0.0, "exact_match": 0.0}
    )
    progress = Noted()
    page = run(words_of_colours(tmp_path, metric="chrf"), tmp_path, progress=progress).report.read_text()
    found = RunFolder(tmp_path / "colours" / "base").read("result")
    assert found["learning_rate"] == 1e-2
    (slow,), (quick,) = (entry["losses"] for entry in found["by_rate"])
    # Without learning, the loss is about the logarithm of the number of symbols. After learning, it is close to 0.
    assert slow > 2
    assert quick < 0.5
    (note,) = [note for note in progress.notes if "the learning rates" in note]
    assert note == f"base: {tie(found)}"
    assert tie(found) in page
