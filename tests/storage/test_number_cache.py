"""Checks the cache of numbers in a file."""

import json

import pytest

from attnlab.storage import number_cache
from attnlab.storage.number_cache import NumberCache


def test_a_number_is_kept_for_its_key_and_for_the_next_process(tmp_path):
    path = tmp_path / "new" / "numbers.json"
    kept = NumberCache(path)
    assert kept.get("a") is None
    kept.put("a", 3)
    kept.put("b", 10**30)
    assert [NumberCache(path).get(key) for key in "abc"] == [3, 10**30, None]
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-20],
        lambda content: content.replace(b"3", b"4"),
        lambda content: b"[]",
        lambda content: b"\xff" + content,
        lambda content: b"",
    ],
    ids=["cut", "changed", "list", "not-utf8", "empty"],
)
def test_a_damaged_file_is_ignored_and_replaced(tmp_path, damage):
    kept = NumberCache(tmp_path / "numbers.json")
    kept.put("a", 3)
    kept.path.write_bytes(damage(kept.path.read_bytes()))
    assert kept.get("a") is None
    kept.put("b", 5)
    assert (kept.get("a"), kept.get("b")) == (None, 5)


def test_what_cannot_be_written_is_not_kept(tmp_path):
    (tmp_path / "file").write_text("")
    kept = NumberCache(tmp_path / "file" / "numbers.json")  # the folder of the numbers is a file
    kept.put("a", 3)
    assert kept.get("a") is None


def test_a_file_with_too_many_numbers_starts_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(number_cache, "MOST", 2)
    kept = NumberCache(tmp_path / "numbers.json")
    for n, key in enumerate("abc"):
        kept.put(key, n)
    assert [kept.get(key) for key in "abc"] == [None, None, 2]
    assert len(json.loads(kept.path.read_text())["numbers"]) == 1
