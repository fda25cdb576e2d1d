from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from attnlab.data.audio import spoken


def test_one_speaker_can_be_held_out(monkeypatch):
    names = [f"{digit}_{who}_{n}.wav" for digit in "07" for who in ("lucas", "theo") for n in range(50)]
    monkeypatch.setattr(spoken, "RECORDINGS", SimpleNamespace(read=lambda: dict.fromkeys(names, b"")))
    monkeypatch.setattr(spoken.waves, "read", lambda content, path: spoken.waves.Wave(np.arange(400.0), 8000))
    parts = spoken.parts()
    assert {part: len(found) for part, found in parts.items()} == {"train": 160, "valid": 20, "test": 20}
    assert [each.name for each in parts["test"][:6]] == [*(f"0_lucas_{n}" for n in range(5)), "0_theo_0"]
    assert {each.name.rpartition("_")[2] for each in parts["valid"]} == set("56789")
    assert {each.label for each in parts["train"]} == {"0", "7"}
    alone = spoken.parts(speaker="theo")
    assert {part: len(found) for part, found in alone.items()} == {"train": 90, "valid": 10, "test": 100}
    assert all("theo" in each.name for each in alone["test"])
    assert not any("theo" in each.name for part in ("train", "valid") for each in alone[part])
    with pytest.raises(ValueError, match=r"task\.speaker='teo' is not known; nearest: 'theo'"):
        spoken.parts(speaker="teo")


def test_the_official_parts(published):
    published("fsdd")
    parts = spoken.parts()
    assert {part: len(found) for part, found in parts.items()} == {"train": 2400, "valid": 300, "test": 300}
    for found in parts.values():
        assert set(Counter(each.label for each in found).values()) == {len(found) // 10}
    assert {each.name.split("_")[1] for each in parts["test"]} == set(spoken.SPEAKERS)
    seconds = sum(len(each.samples) for found in parts.values() for each in found) / 8000
    assert round(seconds) == 1312
