from dataclasses import dataclass

import numpy as np
import pytest

from attnlab.tasks.base.shapes import Classes, Frames
from attnlab.tasks.base.stream import EXAMINED, POSITIONS, GeneratedData


@dataclass(frozen=True)
class Signs:
    valid_examples: int = 5
    test_examples: int = 9
    seed: int = 0


class Signed(GeneratedData):
    """Examples of one number, labelled by whether it is above zero."""

    def __init__(self, task, positions=1):
        super().__init__(task, ("below", "above"), Classes(Frames(1, positions), 2), positions)

    def draw(self, random, size, part):
        drawn = random.normal(size=(size, 1, 1)).astype(np.float32) + (part == "test")
        return {"source": drawn, "label": (drawn[:, 0, 0] > 0).astype(np.int32)}

    def encode_prompt(self, text):
        raise NotImplementedError

    tokens = encode_prompt


def test_a_batch_is_a_function_of_the_tasks_seed_the_seed_and_the_step():
    one, same, other = Signed(Signs()), Signed(Signs()), Signed(Signs(seed=1))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    batch = lambda problem, *at: problem.batch(*at, 4)["source"]
    np.testing.assert_array_equal(batch(one, 2, 3), batch(same, 2, 3))
    for differs in (batch(one, 3, 2), batch(one, 2, 4), batch(other, 2, 3)):
        assert (batch(one, 2, 3) != differs).any()


def test_parts_are_generated_once():
    problem = Signed(Signs(test_examples=2000))
    np.testing.assert_array_equal(
        problem.eval_batches("test", 4)[0]["source"], problem.eval_batches("test")[0]["source"][:4]
    )
    means = [problem.eval_batches("test")[0]["source"].mean(), problem.batch(0, 0, 256)["source"].mean()]
    np.testing.assert_allclose(means, [1, 0], atol=0.3)
    assert len(problem.eval_batches("valid")[0]["label"]) == 5


@pytest.mark.parametrize(("positions", "size"), [(1, EXAMINED), (POSITIONS // 64, 64), (2 * POSITIONS, 1)])
def test_long_examples_have_small_eval_batches(positions, size):
    batches = Signed(Signs(test_examples=EXAMINED + 1), positions).eval_batches("test")
    assert {len(batch["label"]) for batch in batches} == {size}
    assert sum(int((batch["label"] >= 0).sum()) for batch in batches) == EXAMINED + 1


def test_the_frequency_of_the_most_common_class_is_reported():
    problem = Signed(Signs(test_examples=400))
    share = problem.eval_batches("test")[0]["label"].mean()
    assert 0.7 < share < 0.95
    label = np.concatenate([batch["label"] for batch in problem.eval_batches("test")])
    assert problem.notes == (
        f"the most frequent class of the test part is above ({(label == 1).sum() / 400:.1%} of the examples)",
    )


def test_parts_and_limits_are_checked():
    for part, limit in (("train", None), ("test", 0)):
        with pytest.raises(ValueError, match="part="):
            Signed(Signs()).eval_batches(part, limit)
