"""The digest of user code depends on what the code computes, but not on its layout."""

import importlib
import sys
from types import ModuleType

import pytest

import attnlab
from attnlab.lab.study import serialize, user_code
from attnlab.lab.study.load import load_code
from attnlab.lab.study.study import change
from attnlab.mechanisms import Softmax
from tests.small import EXPERIMENT

SOURCE = '''
"""A mechanism of your own."""
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
    """Returns a function that writes a source text to a file, runs it, and returns the digest of its `Mine`."""

    def of(source):
        name = f"own_{len(list(tmp_path.iterdir()))}"
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        module = ModuleType("own_code")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "own_code", module)
        exec(compile(source, str(path), "exec"), module.__dict__)
        monkeypatch.setitem(attnlab.MECHANISMS, "mine", module.Mine())
        (found,) = user_code.codes({"model": {"registry": "MECHANISMS", "name": "mine", "fields": {}}}).values()
        return found

    return of


def test_comments_and_line_numbers_do_not_change_the_fingerprint(digest):
    told = SOURCE.replace("RATE = 0.5", "# how fast\nRATE = 0.5").replace("return jnp", "# squashed\n\n    return jnp")
    assert digest(SOURCE) == digest(told)
    assert digest(SOURCE) == digest(SOURCE.replace("width: int = 4", "width: int = 8")), "fields are told elsewhere"


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
def test_changed_behaviour_changes_the_fingerprint(digest, before, after):
    assert SOURCE.count(before) == 1
    assert digest(SOURCE) != digest(SOURCE.replace(before, after))


def test_classes_of_attnlab_are_no_user_code():
    assert user_code.user_defined(serialize.write(change(EXPERIMENT, **{"model.mechanism": Softmax()}))) == {}


def test_messages_name_the_file_without_local_paths(monkeypatch, tmp_path):
    written = [{"registry": "SCORES", "name": name} for name in ("of-a-module", "of-a-file", "of-a-notebook")]
    (tmp_path / "file.py").write_text("def score(q, k): return q @ k")
    notebook = ModuleType("some-notebook")
    exec("def score(q, k): return q @ k", notebook.__dict__)
    monkeypatch.setitem(sys.modules, "some-notebook", notebook)
    held = of_this_module, load_code(tmp_path / "file.py").score, notebook.score
    for tag, score in zip(written, held, strict=True):
        monkeypatch.setitem(attnlab.SCORES, tag["name"], score)
    found = user_code.places(written)
    assert found == {
        "SCORES.of-a-module": f"of_this_module, of {__name__}",
        "SCORES.of-a-file": "score, of file.py",
        "SCORES.of-a-notebook": "score, of a notebook or session",
    }
    assert user_code.missing({"own": found}) == []
    monkeypatch.delitem(attnlab.SCORES, "of-a-file")
    assert user_code.missing({"own": found | {"NOWHERE.x": "x, of y"}}) == ["score, of file.py"]
    assert user_code.missing({}) == user_code.missing({"own": "broken"}) == [], "of older folders, and of broken ones"


def of_this_module(q, k):
    return q @ k


def test_user_functions_are_included(monkeypatch):
    def score(q, k):
        return q @ k

    monkeypatch.setitem(attnlab.SCORES, "mine", score)
    written = {"registry": "SCORES", "name": "mine"}
    assert user_code.user_defined(written) == {("SCORES", "mine"): score}
    before = user_code.codes(written)
    monkeypatch.setitem(attnlab.SCORES, "mine", lambda q, k: -(q @ k))
    assert user_code.edited({"code": before}, written) == ["SCORES.mine"]
    assert user_code.edited({}, written) == [], "of older folders"


READ = """
from dataclasses import dataclass
from functools import cache, partial, wraps

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms import Linear

LIST = [1, 2]
TABLE = {"a": 3}
CHOSEN = {"b", "c"}
ARRAY = np.array([1.0, 4.0])
CONFIG = Linear(normalise=True)
HALF = partial(max, 5)
RING = [6]
RING.append(RING)


class Holder:
    def __init__(self):
        self.value = 7


HOLDER = Holder()


def scaled(by):
    def inner(x):
        return x * by

    return inner


TWICE = scaled(2)


def traced(function):
    @wraps(function)
    def around(*args):
        return function(*args) + 10

    return around


@jax.jit
def compiled(x):
    return x + 11


@cache
def remembered():
    return 12


@traced
def wrapped(x, y=LIST):
    return TABLE, CHOSEN, ARRAY, CONFIG, HALF, RING, HOLDER, TWICE(x), compiled(x), remembered()


class Mine:
    def __call__(self, x):
        return wrapped(x)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[1, 2]", "[1, 3]"),
        ('"a": 3', '"a": 4'),
        ('"b", "c"', '"b", "d"'),
        ("1.0, 4.0", "1.0, 5.0"),
        ("normalise=True", "normalise=False"),
        ("partial(max, 5)", "partial(max, 6)"),
        ("RING = [6]", "RING = [7]"),
        ("self.value = 7", "self.value = 8"),
        ("x * by", "x - by"),
        ("scaled(2)", "scaled(3)"),
        ("+ 10", "+ 11"),
        ("x + 11", "x + 12"),
        ("return 12", "return 13"),
        ("y=LIST", "y=TABLE"),
    ],
)
def test_global_values_and_decorators_are_included(digest, before, after):
    assert READ.count(before) == 1
    assert digest(READ) == digest(READ)
    assert digest(READ) != digest(READ.replace(before, after))


@pytest.fixture
def beside(digest, tmp_path_factory, monkeypatch):
    """Returns a function for the digest of code that imports a helper module, next to it or installed."""

    def of(source, helper, installed=False):
        place = tmp_path_factory.mktemp("place") / ("site-packages" if installed else "code")
        place.mkdir()
        (place / "helping.py").write_text(helper)
        monkeypatch.syspath_prepend(place)
        monkeypatch.delitem(sys.modules, "helping", raising=False)
        importlib.invalidate_caches()
        user_code._is_own.cache_clear()
        return digest(source)

    yield of
    user_code._is_own.cache_clear()


HELPER = """
import jax.numpy as jnp
BY = [2.0]
def scale(x):
    return jnp.tanh(x) * BY[0]
def other(x):
    return x
"""


def test_optional_imports_do_not_matter(beside):
    source = """
class Mine:
    def __call__(self, x):
        try:
            from helping.missing import faster as scale
            import no_such_module
        except ImportError:
            from helping import scale
        return scale(x)
"""
    assert beside(source, HELPER) != beside(source, HELPER.replace("jnp.tanh", "jnp.sin"))


@pytest.mark.parametrize(
    "source",
    [
        "from helping import scale\nclass Mine:\n    def __call__(self, x):\n        return scale(x)\n",
        "import helping\nclass Mine:\n    def __call__(self, x):\n        return helping.scale(x)\n",
        "import helping as h\nclass Mine:\n    def __call__(self, x):\n        return [h.scale(y) for y in x]\n",
        "class Mine:\n    def __call__(self, x):\n        from helping import scale\n        return scale(x)\n",
        "class Mine:\n    def __call__(self, x):\n        import helping\n        return helping.scale(x)\n",
    ],
)
def test_user_code_of_other_modules_is_included(beside, source):
    before = beside(source, HELPER)
    assert before == beside(source, HELPER.replace("def scale", "# how far\ndef scale"))
    assert before == beside(source, HELPER.replace("return x\n", "return -x\n")), "it is not used"
    assert before != beside(source, HELPER.replace("jnp.tanh", "jnp.sin"))
    assert before != beside(source, HELPER.replace("[2.0]", "[3.0]"))
    installed = beside(source, HELPER, installed=True)
    assert installed == beside(source, HELPER.replace("jnp.tanh", "jnp.sin"), installed=True)
