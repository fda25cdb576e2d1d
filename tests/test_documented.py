"""`help()` of every config class shows every field with its default and its documentation."""

import inspect
import pydoc
import subprocess
import sys
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from textwrap import indent

import pytest

from attnlab import documented, registry
from attnlab.documented import Documented, field_documentation

ROOT = Path(__file__).parent.parent
PACKAGES = ("lab", "mechanisms", "models", "tasks", "decoding", "modules.position", "ops.mask", "ops.feature")


def configs():
    """Returns the dataclasses that are exported or registered, and the dataclasses that they derive from."""
    packages = [import_module(f"attnlab.{name}") for name in PACKAGES]
    exported = [getattr(package, name) for package in packages for name in package.__all__]
    registered = [type(value) for place in registry.PLACES for value in registry.table(place).values()]
    kinds = {base for kind in [*exported, *registered] if isinstance(kind, type) for base in kind.__mro__}
    return sorted(filter(is_dataclass, kinds), key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")


@pytest.mark.parametrize("kind", configs(), ids=lambda kind: kind.__name__)
def test_help_shows_every_field_of_a_config(kind):
    assert isinstance(kind, Documented)
    text = inspect.getdoc(kind)
    assert pydoc.getdoc(kind) == text, "help() shows what pydoc.getdoc returns"
    assert ("\nAttributes:\n" in text) == bool(fields(kind))
    for name, documentation in field_documentation(kind).items():
        assert documentation, f"{name} has no documentation"
        assert f"\n    {name} (" in text
        assert indent(documentation, " " * 8) in text
    # Lists show the first line of the docstring. It stays the same when read from the class or an instance.
    assert text.split("\n")[0] == inspect.cleandoc(vars(kind)["__doc__"]).split("\n")[0]


@dataclass(frozen=True)
class Base(metaclass=Documented):
    """A base."""

    width: int
    """The width.

    It has a second paragraph.
    """
    rate: float = 0.5
    """The rate."""
    names: tuple = field(default_factory=lambda: tuple(range(100)))
    """The names."""


@dataclass(frozen=True)
class Derived(Base):
    """A config.

    Source: none.
    """

    rate: float = 0.25
    inner: Base = Base(3)
    """A config, too."""
    bare: type = int

    constant = 3
    """No field."""


def test_the_section_of_attributes():
    assert inspect.getdoc(Derived) == inspect.cleandoc(
        """A config.

        Source: none.

        Attributes:
            width (required):
                The width.

                It has a second paragraph.
            rate (default 0.25):
                The rate.
            names (default (0, 1, 2, 3, 4, 5, ...)):
                The names.
            inner (default Base(width=3)):
                A config, too.
            bare (default int):
        """
    )


def test_an_instance_and_a_list_have_the_docstring_as_written():
    assert inspect.cleandoc(Derived(1).__doc__) == "A config.\n\nSource: none."
    assert registry.first_line(Derived(1)) == registry.first_line(Derived) == "A config."


def test_without_source_the_docstring_stays_as_written(monkeypatch):
    def refuse(kind):
        raise OSError("source code not available")

    monkeypatch.setattr(inspect, "getsource", refuse)
    monkeypatch.setattr(documented, "_below_fields", documented._below_fields.__wrapped__)
    assert inspect.getdoc(Derived) == "A config.\n\nSource: none."
    assert set(field_documentation(Derived).values()) == {""}
    assert "A config." in pydoc.render_doc(Derived)


def test_a_class_without_docstring_has_that_of_dataclass():
    Bare = dataclass(Documented("Bare", (), {"__annotations__": {"width": int}}))
    assert inspect.getdoc(Bare) == "Bare(width: int)"


def test_the_metaclass_has_a_docstring_of_its_own():
    assert inspect.getdoc(Documented).startswith("Metaclass whose classes show the documentation")


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_help_works_without_docstrings():
    shown = run("-OO", "-c", "from attnlab.training.config import Train; help(Train)")
    assert "class Train" in shown
    assert "batch_size" in shown


def test_no_import_and_no_list_reads_sources():
    code = """
import inspect
read = inspect.getsource
def refuse(thing):
    assert not (isinstance(thing, type) and thing.__module__.startswith("attnlab")), thing
    return read(thing)
inspect.getsource = refuse
from attnlab import lab, registry
for name in lab.__all__:
    getattr(lab, name)
for place in registry.PLACES:
    for value in registry.table(place).values():
        assert registry.first_line(value)
try:
    lab.Train.__doc__
except AssertionError:
    print("read when asked for")
"""
    assert run("-c", code) == "read when asked for\n"
