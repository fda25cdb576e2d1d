import jax
import numpy as np
import pytest

from attnlab.training.programs import filled
from attnlab.training.trainer import Trainer
from tests.small import EXPERIMENT


def test_examples_are_repeated_to_fill_a_batch():
    small = {"x": np.arange(6).reshape(3, 2), "y": np.arange(3)}
    found = filled(small, {"x": np.zeros((5, 2)), "y": np.zeros(5)})
    np.testing.assert_array_equal(found["x"], [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]])
    np.testing.assert_array_equal(found["y"], [0, 1, 2, 0, 1])


@pytest.mark.parametrize("like", [{"x": np.zeros((5, 3))}, {"x": np.zeros((2, 2))}, {"z": np.zeros((5, 2))}])
def test_a_batch_that_does_not_fit_stays(like):
    batch = {"x": np.zeros((3, 2))}
    assert filled(batch, like) is batch


def test_a_compilation_is_announced_with_the_sizes_of_the_batch():
    problem, announced = EXPERIMENT.task.load(), []
    create = lambda key: EXPERIMENT.model.create(key, problem.shape)
    trainer = Trainer(create, problem, EXPERIMENT.train, announce=announced.append)
    trainer.answers(trainer.start().model, "valid", 512)
    tokens = {name: x.shape[-1] for name, x in problem.eval_batches("valid", 512)[0].items() if np.ndim(x) == 2}
    assert len(announced) == 1
    assert "batch" in announced[0]
    assert f"{max(tokens.values())} tokens" in announced[0]


def test_answers_to_the_first_examples_are_those_of_the_lane():
    """The program of the validation data computes the answers and is not compiled again."""
    problem, train = EXPERIMENT.task.load(), EXPERIMENT.train
    trainer = Trainer(lambda key: EXPERIMENT.model.create(key, problem.shape), problem, train)
    models, lane = trainer.start().model, len(train.lanes) - 1
    trainer.answers(models, "valid", 512)
    compiled = len(trainer.compiled)
    found = trainer.first_answers(models, lane, 4)
    assert len(trainer.compiled) == compiled
    batch = problem.eval_batches("test", 4)[0]
    alone = problem.answer(jax.tree.map(lambda x: x[lane], models), batch)
    for name, answers in alone.items():
        np.testing.assert_allclose(found[name][:4], answers[:4], rtol=1e-5)
