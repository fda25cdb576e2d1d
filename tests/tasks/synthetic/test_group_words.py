import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.synthetic.group_words import S3, S5, GroupWords, ModularSum, Parity
from tests.tasks.compiled import answered, lost

SMALL = {"length": 8, "tested": (8, 20), "valid_examples": 10, "test_examples": 150}


def adder(n):
    """Returns a model that sums its inputs modulo n."""
    return lambda tokens, keep, key=None: jnp.eye(n)[jnp.cumsum(tokens) % n]


@pytest.mark.parametrize(
    ("task", "n"), [(Parity(**SMALL), 2), (ModularSum(**SMALL), 5), (GroupWords(group="z7", **SMALL), 7)]
)
def test_cyclic_groups_are_sums(task, n):
    problem = task.load()
    assert problem.shape == Tokens(n, 20)
    loss, metrics = lost(problem, lambda *given, key: 50 * adder(n)(*given), problem.batch(0, 0, 16))
    assert float(loss) < 1e-6
    assert metrics == {"token_accuracy": 1.0}
    for part in ("valid", "test"):
        answers = answered(problem, adder(n), part)
        assert set(problem.score(part, answers).values()) == {1.0}
    assert problem.format_answer(problem.answer(adder(n), problem.encode_prompt("1 0 1 1"))) == str(3 % n)


def test_one_wrong_product_spoils_its_word_alone():
    problem = Parity(**SMALL).load()
    answers = [{"tokens": batch["answers"].copy()} for batch in problem.eval_batches("test")]
    answers[0]["tokens"][5, 3] ^= 1  # of the 150 words of 8
    assert problem.score("test", answers) == {
        "sequence_accuracy": pytest.approx(1 - 1 / 300), "sequence_accuracy.8": pytest.approx(1 - 1 / 150),
        "sequence_accuracy.20": 1.0, "token_accuracy": pytest.approx(1 - 1 / 2400),
        "token_accuracy.8": pytest.approx(1 - 1 / 1200), "token_accuracy.20": 1.0,
    }  # fmt: skip
    assert problem.metric.name == "sequence_accuracy"
    assert problem.counted("test") == 300
    rows = problem.rows("test", answers)
    assert len(rows) == 300
    assert [n for n, row in enumerate(rows) if row.expected != row.answer] == [5]


def test_a_constant_has_half_of_the_bits_and_no_word():
    problem = Parity(length=32, tested=(64,), test_examples=200).load()
    answers = [{"tokens": np.zeros_like(batch["tokens"])} for batch in problem.eval_batches("test")]
    scores = problem.score("test", answers)
    assert abs(scores["token_accuracy"] - 0.5) < 0.02
    assert scores["sequence_accuracy"] == 0


def test_a_table_is_its_group(tmp_path):
    named = S3(**SMALL).load()
    table = tuple(map(tuple, named.group.table.tolist()))
    path = tmp_path / "s3.txt"
    path.write_text("\n".join(" ".join(map(str, row)) for row in table))
    given, read = GroupWords(group=table, **SMALL).load(), GroupWords(table=str(path), **SMALL).load()
    assert given.words == read.words == tuple("012345")
    for other in (given, read):
        for mine, its in zip(named.eval_batches("test"), other.eval_batches("test"), strict=True):
            np.testing.assert_array_equal(mine["answers"], its["answers"])
    path.write_text("\n".join(" ".join(str(5 - n) for n in row[::-1]) for row in table[::-1]))
    assert GroupWords(table=str(path), **SMALL).load().fingerprint != read.fingerprint
    path.write_text("0 1\n1 1")
    with pytest.raises(DataError, match="element 1 has no inverse"):
        GroupWords(table=str(path)).load()


def test_the_data_are_functions_of_seed_and_step():
    problem, again = S5(**SMALL).load(), S5(**SMALL).load()
    assert problem.fingerprint == again.fingerprint
    np.testing.assert_array_equal(problem.batch(1, 2, 4)["tokens"], again.batch(1, 2, 4)["tokens"])
    others = [problem.batch(1, 3, 4), problem.batch(2, 2, 4), S5(**SMALL, seed=1).load().batch(1, 2, 4)]
    assert all((problem.batch(1, 2, 4)["tokens"] != other["tokens"]).any() for other in others)
    easier = S5(**SMALL, moved=2).load()
    assert easier.shape == problem.shape
    assert easier.fingerprint != problem.fingerprint
    assert len(np.unique(easier.batch(0, 0, 200)["tokens"])) == 11


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"group": "s55"}, r"task\.group='s55' is too large"),
        ({"group": "klein"}, r"task\.group='klein' is not a known group; known: zN"),
        ({"group": ((0, 1), (1, 1))}, r"task\.group is not the multiplication table of a group: element 1 has no"),
        ({"moved": 1}, r"task\.moved=1 leaves the identity alone"),
        ({"group": "z5", "moved": 2}, r"task\.moved=2 requires a group of permutations"),
        ({"group": "z5", "table": "mine.txt"}, r"task\.group='z5' has no effect with task\.table='mine.txt'"),
        ({"length": 1}, r"task\.length=1 must be a whole number in 2"),
        ({"tested": (8, 8)}, "twice"),
        ({"tested": 8}, r"task\.tested=8 must list whole numbers in 2 "),
        ({"group": None}, r"task\.group=None must be the name of a group, or a table of its products"),
        ({"group": (1, 2)}, r"task\.group=\(1, 2\) must be the name of a group"),
        ({"test_examples": 0}, r"task\.test_examples=0"),
        ({"seed": -1}, r"task\.seed=-1"),
    ],
)
def test_invalid_values_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        GroupWords(**fields)
