"""Overrides of fields that variants have with different kinds of values."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.lab.study.load import load_study
from attnlab.lab.study.overrides import apply
from attnlab.models.seq2seq import Seq2Seq
from attnlab.modules.attentions import ATTENTIONS

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def resolved(file, *given):
    return apply(load_study(EXPERIMENTS / f"{file}.py"), given)


@pytest.mark.parametrize("file", ["sigmorphon", "scan"])
@pytest.mark.parametrize("value", ["luong", "gated"])
def test_a_value_is_set_in_the_variants_whose_field_it_fits(file, value):
    found, before = resolved(file, f"model.attention={value}"), load_study(EXPERIMENTS / f"{file}.py").variants()
    for old, new in zip(before.values(), found.variants().values(), strict=True):
        fits = isinstance(old.model, Seq2Seq) == (value == "luong")
        wanted = "luong" if value == "luong" else ATTENTIONS[value]
        assert new.model.attention == (wanted if fits else old.model.attention)
    one, other = (
        [name for name, each in before.items() if isinstance(each.model, Seq2Seq) == kind] for kind in (True, False)
    )
    if value != "luong":
        one, other = other, one
    assert found.notes[0] == (
        f"model.attention={value} is set in {', '.join(one)}; it is no value of this field in {', '.join(other)}"
    )


def test_a_value_that_fits_nowhere_is_refused_with_every_reason():
    words = (
        r"^model.attention='luogn' must be one of bahdanau, luong, or none \(in recurrent-hun, recurrent-jpn\); "
        r"model.attention='luogn' is not known; known: multi-head, .* \(in transformer-hun, transformer-jpn\)$"
    )
    with pytest.raises(ValueError, match=words):
        resolved("sigmorphon", "model.attention=luogn")
    with pytest.raises(ValueError, match=r"^model.width='x' must be a whole number$"):
        resolved("sigmorphon", "model.width=x")


def test_a_field_without_a_registry_takes_its_own_values():
    """Checks `attention` of a recurrent model, which is none and has the name of a registry."""
    (found,) = resolved("g2p", "model=seq2seq", "model.attention=luong").variants().values()
    assert found.model.attention == "luong"
    with pytest.raises(ValueError, match=r"^model.attention='gated' must be one of bahdanau, luong, or none$"):
        resolved("g2p", "model=seq2seq", "model.attention=gated")
