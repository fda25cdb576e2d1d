"""Studies of classification and image generation, from the study to its page."""

from dataclasses import replace

import numpy as np
import pytest

from attnlab.lab import load
from attnlab.lab.launch import run
from attnlab.lab.planning.summary import show
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Experiment, Study
from attnlab.lab.trained.inspect import inspect
from attnlab.lab.trained.sample import sample
from attnlab.mechanisms import Linear
from attnlab.models import SAGAN, Bert, ViT
from attnlab.tasks.text.sentences import Questions
from attnlab.tasks.vision.generation import Generation
from attnlab.tasks.vision.images import Figures
from attnlab.training.config import Train

TRAIN = Train(steps=2, batch_size=4, warmup=0, seeds=1, evaluate_every=2, save_every=2)
FIGURES = Figures(train_examples=20, valid_examples=10, test_examples=10, size=12)


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    model = ViT(width=8, heads=2, layers=1, feedforward=8, patch=4)
    study = Study(Experiment(task=FIGURES, model=model, train=TRAIN), name="figures")
    return run(study, tmp_path_factory.mktemp("runs"))


def test_image_classification_writes_maps_of_patches_and_pictures(figures):
    folder = RunFolder(figures.folder / "base")
    maps = folder.read("maps") or {}
    assert maps["kind"] == "encoder"
    assert [len(example["source"]) for example in maps["examples"]] == [9, 9, 9]
    layers = np.array(maps["examples"][0]["layers"])
    assert layers.shape == (1, 2, 9, 9)
    np.testing.assert_allclose(layers.sum(axis=-1), 1, atol=1e-3)
    page = figures.report.read_text()
    assert page.count("data:image/png;base64,") == len((folder.read("pictures") or {})["pictures"]) > 0
    assert "<h2>Answers</h2>" in page


def test_sample_and_inspect_of_one_image(figures):
    place = figures.folder / "base"
    model, problem = load(place)
    found = sample(place, "test:3")
    assert found["answer"] == problem.format_answer(problem.answer(model, problem.encode_prompt("test:3")))
    assert found["map"] is None
    inside = inspect(place, "test:3")
    assert inside["attentions"]["encoder"]["statistics"][0][0]["rank"] >= 1
    assert "encoder 1 attention" in inside["training"][-1]["parts"]


BERT = Bert(width=8, heads=2, layers=1, feedforward=8)


def test_two_phases_are_one_run(tmp_path):
    study = Study(Experiment(task=Questions(masked=1, buckets=1), model=BERT, train=TRAIN), name="questions")
    folder = RunFolder(run(study, tmp_path).folder / "base")
    result = folder.read("result") or {}
    assert {"accuracy", "masked_nats"} <= result["metrics"].keys()


def test_pretraining_without_training_is_refused(tmp_path):
    refused = Study(Experiment(task=Questions(masked=2, buckets=1), model=BERT, train=TRAIN), name="late")
    with pytest.raises(ValueError, match=r"train.steps=2 must be greater than the number of pretraining steps, 2$"):
        run(refused, tmp_path)
    assert not (tmp_path / "late").exists()
    with pytest.raises(ValueError, match=r"train.steps=2 must be greater than the number of pretraining steps, 2$"):
        show(refused)
    with pytest.raises(
        ValueError, match=r"train.steps=2 \(--quick\) must be greater than the number of pretraining steps, 2$"
    ):
        run(replace(refused, quick={"train.steps": 2}), tmp_path, quick=True)


PAINTED = Generation(images=FIGURES, latent=3, samples=8, classifier_steps=2)


@pytest.mark.parametrize("mechanism", [Linear(), None])
def test_image_generation_has_maps_if_the_model_has_attention(mechanism, tmp_path):
    model = SAGAN(width=8, mechanism=mechanism)
    made = run(Study(Experiment(task=PAINTED, model=model, train=TRAIN), name="made"), tmp_path)
    kept = RunFolder(made.folder / "base").read("maps")
    if mechanism is None:
        assert kept is None
        with pytest.raises(ValueError, match="the model has no attention"):
            inspect(made.folder / "base", "7")
        return
    assert [np.shape(example["layers"]) for example in kept["examples"]] == [(1, 1, 36, 36)] * 3
    assert kept["examples"][0]["source"][:5] == ["1,1", "1,2", "1,3", "1,4", "1,5"]
    assert "Attention maps" in made.report.read_text()
    seen = inspect(made.folder / "base", "7")
    image = seen["attentions"]["image"]
    assert image["rows"] == kept["examples"][0]["source"]
    assert image["rank"] == 2, "as many components has a query"
    assert "\n" not in seen["answer"]
