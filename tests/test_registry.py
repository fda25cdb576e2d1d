import subprocess
import sys
from pathlib import Path

import pytest

import attnlab
from attnlab import registry
from attnlab.cli.commands import KINDS

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"softmax": 1, "linear": 2, "gated-linear": 3}


def test_nearest_prefers_names_with_this_prefix():
    assert registry.nearest("elu", ["relu", "elu+1"]) == "elu+1"
    assert registry.nearest("soft", ["sort", "softmax-blockwise", "softmax"]) == "softmax"


def test_pick_returns_known_values():
    assert registry.pick(NAMES, "linear", "model.mechanism") == 2


def test_pick_names_the_nearest_and_the_known():
    words = "model.mechanism='sofmax' is not known; nearest: 'softmax'; known: softmax, linear, gated-linear"
    with pytest.raises(ValueError, match=f"^{words}$"):
        registry.pick(NAMES, "sofmax", "model.mechanism")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Softmax", "softmax"),
        ("LINEAR", "linear"),
        ("gated_linear", "gated-linear"),
        ("sotfmax", "softmax"),
        ("zebra", None),
        ("", None),
    ],
)
def test_nearest(name, near):
    assert registry.nearest(name, NAMES) == near


def test_a_name_is_exact_not_a_prefix():
    with pytest.raises(ValueError, match="nearest: 'softmax'"):
        registry.pick(NAMES, "softma", "model.mechanism")


def test_strange_names_stay_on_one_line():
    with pytest.raises(ValueError, match=r"^model.mechanism='soft\\nmax' is not known; .*$"):
        registry.pick(NAMES, "soft\nmax", "model.mechanism")


@pytest.mark.parametrize("place", registry.PLACES)
def test_every_registry_has_its_place_and_is_exported(place):
    table = registry.table(place)
    assert table
    assert getattr(attnlab, place) is table
    assert place in dir(attnlab)
    for name, value in table.items():
        assert registry.find(value) == (place, name)
        assert registry.first_line(value)


@pytest.mark.parametrize("place", registry.PLACES)
def test_an_unknown_name_of_a_registry_lists_the_nearest_and_the_known(place):
    table = registry.table(place)
    name = next(iter(table))
    with pytest.raises(KeyError) as missing:
        table[name[:-1] + "~"]
    assert f"{place}['{name[:-1]}~'] is not known; nearest: " in str(missing.value)
    assert f"known: {', '.join(table)}" in str(missing.value)
    with pytest.raises(KeyError, match="3"):
        table[3]
    # Otherwise it is an ordinary dict: looking up a key adds nothing.
    assert isinstance(table, dict)
    assert table.get("nothing") is None
    assert "nothing" not in table


@pytest.mark.parametrize("place", registry.PLACES)
def test_list_lines_of_a_registry_are_distinct(place):
    table = registry.table(place)
    assert len({registry.first_line(value) for value in table.values()}) == len(table)


def test_every_registry_can_be_listed():
    assert {*KINDS} == {place.lower() for place in registry.PLACES} | {"experiments"}


def test_rooms_are_imported_on_first_use():
    assert attnlab.ops.mask.Causal()
    with pytest.raises(AttributeError, match="kitchen"):
        attnlab.kitchen  # noqa: B018


def test_importing_the_package_is_fast():
    heavy = "{'jax', 'numpy', 'tyro', 'rich', 'argparse', 'dataclasses'}"
    code = f"import sys; import attnlab; print(sorted({heavy} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert answer.stdout == "[]\n", answer.stderr


def test_the_version_is_defined_once():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"].get("version") is None
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "attnlab.__version__"}
    assert attnlab.__version__.count(".") == 2
