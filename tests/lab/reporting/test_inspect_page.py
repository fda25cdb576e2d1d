"""The page of `attnlab inspect` shows every map with its statistics and escapes all text."""

import re

import pytest

from attnlab.lab.reporting.inspect_page import page, write
from attnlab.storage.json_file import FolderError
from tests.lab.looked import FOUND, found
from tests.lab.reporting.parsed_page import HOSTILE, Page


def test_every_map_has_its_statistics():
    shown = Page(page(FOUND | {"notes": ["unfinished"]}, "a c", "small/one"))
    assert "small/one · step 1,200 · attnlaba c → b" in shown.text
    assert "unfinished" in shown.text
    maps = [tags["aria-label"] for _, tags in shown.tags if "map" in (tags.get("class") or "").split()]
    assert maps == [
        "encoder attention, last layer, mean over heads",
        "encoder attention of layer 1, head 1",
        "encoder attention of layer 1, head 2",
        "cross attention, last layer, mean over heads",
        "cross attention of layer 1, head 1",
    ]
    assert "head 1 · rank 1.50, relative entropy 46%" in shown.text
    assert "head 2 · rank –, relative entropy –" in shown.text
    assert "Encoder: linear" in shown.text
    assert "b ← a 0.250" in shown.text, "the mean of the two heads"


def test_it_has_every_table():
    text = Page(page(FOUND, "a c", "small/one")).text
    for heading in ("During training", "Norm of the loss gradient", "Distance from the maps of small/two"):
        assert heading in text
    assert "decoder is not compared: layers × heads are none here and 1 × 2 in the other run" in text
    assert "the softmax of the same queries and keys" in text
    steps = Page(page(found(steps=range(0, 1001, 100)), "a c", "small/one")).text
    assert all(steps.count(f"step {n:,}") >= 2 for n in range(0, 1001, 100)), "a column for every checkpoint"
    alone = FOUND | {"attentions": {"cross": FOUND["attentions"]["cross"]}, "distance": None}
    text = Page(page(alone, "a c", "small/one")).text
    assert "Distance from the maps" not in text
    assert "the softmax of the same" not in text


def test_markup_in_text_is_escaped_and_nothing_is_fetched():
    sides = {"rows": [HOSTILE, "∎"], "columns": [HOSTILE, "b", "c"], "mechanism": HOSTILE}
    hostile = {name: seen | sides for name, seen in FOUND["attentions"].items()}
    told = FOUND["distance"] | {"run": HOSTILE, "notes": [HOSTILE]}
    given = FOUND | {"answer": HOSTILE, "notes": [HOSTILE], "attentions": hostile, "distance": told}
    shown, plain = Page(page(given, HOSTILE, HOSTILE)), Page(page(FOUND | {"notes": ["x"]}, "a c", "x/y"))
    assert {tag for tag, _ in shown.tags} == {tag for tag, _ in plain.tags}
    assert not re.search(r"https?:|@import|url\(", shown.source)


def test_it_is_written_atomically_without_local_paths(tmp_path):
    write(tmp_path / "a.html", FOUND, "a c", tmp_path / "small" / "one")
    assert (tmp_path / "a.html").read_text() == page(FOUND, "a c", "small/one")
    with pytest.raises(FolderError, match=r"^/proc/a.html: "):
        write("/proc/a.html", FOUND, "a c", tmp_path)
    with pytest.raises(ValueError, match=r"must end in .html"):
        write(tmp_path / "a.png", FOUND, "a c", tmp_path)
