"""Code of one's own: what it says tells runs apart, and how it is laid out does not."""

import sys
from types import ModuleType

import pytest

import attnlab
from attnlab.lab import configuration, own
from attnlab.lab.study import change
from attnlab.mechanisms import Softmax
from tests.small import EXPERIMENT

SOURCE = '''
"""One's own."""
from dataclasses import dataclass
from functools import partial
import jax
import jax.numpy as jnp

RATE = 0.5
SIZES = (1, 2)

def helper(x):
    return jnp.tanh(x) * RATE * SIZES[1]

@dataclass(frozen=True)
class Mine:
    """A mechanism."""
    width: int = 4
    order = 3

    @property
    def double(self):
        return 2 * self.width

    @staticmethod
    def still(x):
        return x

    def __call__(self, x):
        return (lambda y: helper(y))(x) + self.double
'''


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """The digest of `Mine` as a text has it, which is run from a file."""

    def of(source, on_disk=True):
        name = f"own_{len(list(tmp_path.iterdir()))}"
        path = tmp_path / f"{name}.py"
        path.write_text(source if on_disk else "")
        module = ModuleType("own_code")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "own_code", module)
        exec(compile(source, str(path), "exec"), module.__dict__)
        monkeypatch.setitem(attnlab.MECHANISMS, "mine", module.Mine())
        (found,) = own.codes({"model": {"registry": "MECHANISMS", "name": "mine", "fields": {}}}).values()
        return found

    return of


def test_comments_and_lines_are_no_code(digest):
    told = SOURCE.replace("RATE = 0.5", "# how fast\nRATE = 0.5").replace("return jnp", "# squashed\n\n    return jnp")
    assert digest(SOURCE) == digest(told)
    assert digest(SOURCE) == digest(SOURCE.replace("width: int = 4", "width: int = 8")), "fields are told elsewhere"


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("jnp.tanh(x)", "jnp.sin(x)"),
        ("RATE = 0.5", "RATE = 0.6"),
        ("SIZES = (1, 2)", "SIZES = (1, 3)"),
        ("2 * self.width", "3 * self.width"),
        ("        return x\n", "        return -x\n"),
        ("order = 3", "order = 4"),
        ("helper(y))(x)", "helper(y) + 1)(x)"),
    ],
)
def test_what_it_does_is(digest, before, after, on_disk):
    assert SOURCE.count(before) == 1
    assert digest(SOURCE, on_disk) != digest(SOURCE.replace(before, after), on_disk)


def test_what_attnlab_defines_is_not_ones_own():
    assert own.own(configuration.write(change(EXPERIMENT, **{"model.mechanism": Softmax()}))) == {}


def test_a_function_of_ones_own_counts(monkeypatch):
    def score(q, k):
        return q @ k

    monkeypatch.setitem(attnlab.SCORES, "mine", score)
    written = {"registry": "SCORES", "name": "mine"}
    assert own.own(written) == {("SCORES", "mine"): score}
    before = own.codes(written)
    monkeypatch.setitem(attnlab.SCORES, "mine", lambda q, k: -(q @ k))
    assert own.edited({"code": before}, written) == ["SCORES.mine"]
    assert own.edited({}, written) == [], "of older folders"
