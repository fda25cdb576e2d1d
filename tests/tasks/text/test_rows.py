"""Checks examples and answers as text: one row per example, in the order of the evaluation, without padding."""

import numpy as np
import pytest

from attnlab.console.metric import Metric
from attnlab.data.synthetic.listops import evaluate
from attnlab.data.text.example import Example
from attnlab.data.text.units import Characters, Words
from attnlab.tasks import (
    Associations,
    Discs,
    DocumentPairs,
    Documents,
    Figures,
    Induction,
    ListOps,
    Nodes,
    Pathfinder,
    Questions,
    Recall,
    Reverse,
    Tones,
)
from attnlab.tasks.base.task import Row
from attnlab.tasks.text.continuation import LanguageModelData
from attnlab.tasks.text.transduction import PairData


def truth(problem):
    """Returns the right answers of a problem whose batches hold them, in the form in which a model gives them."""
    found = []
    for batch in problem.eval_batches("test"):
        label = np.maximum(batch["label"], 0)
        found.append({"label": label, "probability": np.full(label.shape, 0.75), "right": label >= 0})
    return found


CLASSES = {
    "questions": (Questions(train_examples=40, valid_examples=20, test_examples=300), 300),
    "figures": (Figures(train_examples=40, valid_examples=10, test_examples=300, size=12), 300),
    "listops": (ListOps(shortest=4, longest=12, valid_examples=10, test_examples=300), 300),
    "documents": (Documents(shortest=20, longest=40, valid_examples=10, test_examples=30), 30),
    "document-pairs": (DocumentPairs(shortest=20, longest=40, valid_examples=10, test_examples=30), 30),
    "pathfinder": (Pathfinder(size=16, dashes=2, distractors=0, valid_examples=4, test_examples=20), 20),
    "nodes": (Nodes(each=5, valid_examples=10, test_examples=1100), 1100),
}


@pytest.mark.parametrize("name", CLASSES)
def test_an_example_with_a_class_is_a_row_with_both_classes_and_the_probability(name):
    task, count = CLASSES[name]
    problem = task.load()
    rows = problem.rows("test", truth(problem))
    assert len(rows) == count
    assert all(row.answer == row.expected and row.figure == 0.75 for row in rows)
    assert len({row.expected for row in rows}) > 1
    assert problem.figure == "probability"


def test_a_row_has_the_given_sentence_and_padding_has_no_row():
    problem = CLASSES["questions"][0].load()
    rows = problem.rows("test", truth(problem))
    prompts = [problem.encode_prompt(row.input)["source"] for row in rows[:20]]
    examined = problem.eval_batches("test")[0]["source"]
    assert all((one[0] == examined[n]).all() for n, one in enumerate(prompts))
    limited = problem.rows("test", [{"label": np.zeros(5, int), "probability": np.ones(5)}], 5)
    assert {row.input for row in limited} <= {row.input for row in rows}
    assert len(limited) == 5


def test_rows_of_expressions_and_documents():
    problem = CLASSES["listops"][0].load()
    assert all(evaluate(row.input.split()) == int(row.expected) for row in problem.rows("test", truth(problem)))
    for name, apart in (("documents", ""), ("document-pairs", "|||")):
        problem = CLASSES[name][0].load()
        (examined, *_) = problem.eval_batches("test")
        for n, row in enumerate(problem.rows("test", truth(problem))[:5]):
            source, keep = (examined[each][n].reshape(1 + bool(apart), -1) for each in ("source", "keep"))
            texts = ["".join(chr(byte - 1) for byte in each[kept]) for each, kept in zip(source, keep, strict=True)]
            assert row.input == apart.join(texts)


def test_an_image_and_a_node_are_named():
    problem = CLASSES["figures"][0].load()
    assert problem.rows("test", truth(problem))[11].input == "test:12"
    problem = CLASSES["nodes"][0].load()
    first = problem.rows("test", truth(problem))[0]
    assert problem.encode_prompt(first.input)["node"][0] == problem.parts["test"][0]


def test_a_pair_has_its_source_every_reference_and_the_answer_that_is_scored():
    example = lambda source, *targets: Example(source, targets)
    parts = {
        "train": [example("ab", "b a"), example("ba", "a b")],
        "valid": [example("ab", "b a")],
        "test": [example("ab", "b a", "b"), example("bb", "b b")],
    }
    measure = lambda answers, references: {"right": sum(a in r for a, r in zip(answers, references, strict=True)) / 2}
    problem = PairData(parts, (Characters(), Words()), measure, (Metric("right", higher=True),), likelihood=True)
    b, end = problem.target.encode("b")[0], 2
    tokens = np.array([[b, end, 0], [b, b, b]])
    answers = [{"tokens": tokens, "nats": np.array([1.5, 2.5])}]
    rows = problem.rows("test", answers)
    assert rows == [Row("ab", "b a ||| b", "b", 1.5), Row("bb", "b b", "b b b", 2.5)]
    assert problem.score("test", answers)["right"] == 0.5
    assert problem.figure == "nats"


def test_blocks_concatenate_to_the_text_and_their_nats_to_the_metric():
    text = "the cat sat on the mat\n" * 30
    problem = LanguageModelData({"train": text, "valid": text, "test": text[:101]}, Characters(), 16)
    batches = problem.eval_batches("test")
    cost = lambda scored: np.where(scored, np.arange(scored.size).reshape(scored.shape) / 7, 0)
    answers = [{"nats": cost(batch["scored"]), "right": np.zeros(batch["scored"].shape)} for batch in batches]
    rows = problem.rows("test", answers)
    assert "".join(row.input for row in rows) == text[1:101]
    assert [row.answer for row in rows] == [None] * 7
    assert sum(row.figure for row in rows) / 100 == pytest.approx(problem.score("test", answers)["nats_per_character"])


def test_a_row_of_recall_ends_at_its_query():
    for task in (
        Recall(vocabulary=16, pairs=3, queries=3, length=16, valid_examples=4, test_examples=300),
        Induction(vocabulary=4, length=8, tested=(8, 12), valid_examples=4, test_examples=130),
    ):
        problem = task.load()
        rows = problem.rows("test", [{"tokens": batch["answers"]} for batch in problem.eval_batches("test")])
        assert len(rows) == problem.count_scored("test")
        assert all(row.answer == row.expected for row in rows)
    recalled = Recall(vocabulary=16, pairs=3, queries=1, valid_examples=4, test_examples=40).load()
    rows = recalled.rows("test", [{"tokens": batch["answers"]} for batch in recalled.eval_batches("test")])
    for row in rows:
        *pairs, query = row.input.split()
        assert dict(zip(pairs[::2], pairs[1::2], strict=True))[query] == row.expected


def test_associations_have_a_row_for_each_queried_key():
    problem = Associations(keys=4, length=6, examined=30).load()
    answers = [
        {"predicted": b["answers"], "loss": np.full(b["answers"].shape, 0.5)} for b in problem.eval_batches("test")
    ]
    rows = problem.rows("test", answers)
    assert len(rows) == sum(batch["scored"].sum() for batch in problem.eval_batches("test"))
    for row in rows:
        *pairs, query = row.input.split()
        # The last value of a key counts.
        assert dict(pair.split(":") for pair in pairs)[query.rstrip("?")] == row.expected == row.answer


def test_a_string_of_sounds_is_named_by_its_recordings_in_their_order():
    problem = Tones(train_examples=24, valid_examples=12, test_examples=120, digits=2).load()
    answers = []
    for rows, batch in problem._examined("test", None):
        word = np.zeros((len(batch["label"]), 2), int)
        word[: len(rows)] = problem._strings["test"].spoken(rows)
        answers.append({"label": batch["label"], "word": word, "probability": np.ones(word.shape)})
    rows = problem.rows("test", answers)
    assert len(rows) == 120
    for row in rows:
        # The name of a tone is its word and a number.
        assert [name.split()[0] for name in row.input.split(" + ")] == row.expected.split() == row.answer.split()


def test_a_row_of_detection_has_true_and_predicted_boxes_by_score():
    problem = Discs(train_examples=4, valid_examples=2, test_examples=18, rows=16, columns=16, most=2).load()
    box = np.array([0.125, 0.25, 0.5, 1.0])
    answers = [
        {
            "boxes": np.tile(box, (len(batch["label"]), 3, 1)),
            "label": np.tile([0, 1, 2], (len(batch["label"]), 1)),
            "score": np.tile([0.6, 0.4, 0.9], (len(batch["label"]), 1)),
        }
        for batch in problem.eval_batches("test")
    ]
    rows = problem.rows("test", answers)
    assert len(rows) == 18
    disc, _, triangle = problem.classes
    where = "0.1250 0.2500 0.5000 1.0000"
    assert {row.answer for row in rows} == {f"{triangle} 0.900 {where}; {disc} 0.600 {where}"}
    assert sum(row.expected.count(";") + 1 for row in rows if row.expected) == sum(
        len(scene.boxes) for scene in problem._scenes["test"]
    )


def test_a_reversed_sequence_is_written_with_spaces():
    problem = Reverse(train_examples=40, valid_examples=10, test_examples=10, symbols=5, longest=6).load()
    rows = problem.rows("test", [{"tokens": batch["target"]} for batch in problem.eval_batches("test")])
    assert all(row.expected == row.answer == " ".join(reversed(row.input.split())) for row in rows)
    assert rows[0].figure is None
