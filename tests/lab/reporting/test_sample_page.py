"""The page of one answer shows input, answer and attention, and escapes all text."""

import re

import numpy as np
import pytest

from attnlab.decoding import Beam, Sample
from attnlab.lab.reporting.sample_page import page, write
from attnlab.lab.trained.decoding import Answer
from attnlab.storage.json_file import FolderError
from tests.lab.reporting.parsed_page import HOSTILE, Page

LAYERS = np.array([[[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]]] * 3)
ANSWERS = [Answer("b a", -0.25, True, np.zeros(3)), Answer("b b", -1.5, False, np.zeros(3))]
FOUND = {
    "answer": "b a",
    "answers": ANSWERS,
    "decoder": Beam(best=2),
    "source": ["a", "b"],
    "target": ["b", "a", "∎"],
    "layers": LAYERS.tolist(),
}


def test_the_page_shows_input_answer_and_attention():
    shown = Page(page(FOUND, "a b", "small/softmax"))
    assert "small/softmax · attnlaba b → b a" in shown.text
    assert "1-0.250b a2-1.500b b …" in shown.text
    assert "Decoder: beam, size 5, penalty 1, best 2. Score: log-probability in nats, divided by" in shown.text
    assert "… marks an answer cut off at the maximum length" in shown.text
    maps = [
        attributes["aria-label"] for _, attributes in shown.tags if "map" in (attributes.get("class") or "").split()
    ]
    words = [f"layer {n}, {head}" for n in (1, 2, 3) for head in ("mean", "head 1", "head 2")]
    assert maps == ["attention of the best answer, last layer, mean over heads", *(f"attention of {w}" for w in words)]
    assert "∎ ← a 0.750" in shown.text
    assert "b ← b 0.250" in shown.text


def test_one_sampled_answer():
    found = FOUND | {"answers": ANSWERS[:1], "decoder": Sample(0.5, top_k=3)}
    shown = Page(page(found, "a b", "small/softmax")).text
    assert "Decoder: sample, temperature 0.5, top-k 3, best 1. Score: log-probability in nats." in shown
    assert "…" not in shown.replace("< … ", "")


def test_a_model_without_attention_has_a_note():
    shown = Page(page(FOUND | {"layers": None}, "a b", "small/base"))
    assert "There is no map" in shown.text
    assert "svg" not in [tag for tag, _ in shown.tags]
    # An answer that is not decoded has no list of answers either.
    bare = {"answer": "v1", "answers": [], "decoder": None, "source": ["k1"], "target": ["k1"], "layers": None}
    assert "<h2>Answers</h2>" not in page(bare, "k1", "recall/base")


def test_a_long_map_is_truncated_with_a_note():
    found = FOUND | {"source": ["a"] * 200, "target": ["b"], "layers": np.full((1, 1, 1, 200), 0.005)}
    assert "Only the first 120 of 200 positions are drawn." in page(found, "a", "x/y")


def test_markup_in_text_is_escaped_and_nothing_is_fetched():
    found = FOUND | {"answer": HOSTILE, "source": [HOSTILE, "b"], "target": [HOSTILE, "a", "∎"]}
    found["answers"] = [Answer(HOSTILE, -1.0, True, np.zeros(3))] * 2
    shown, plain = Page(page(found, HOSTILE, HOSTILE)), Page(page(FOUND, "a b", "x/y"))
    assert {tag for tag, _ in shown.tags} == {tag for tag, _ in plain.tags}
    assert {name for _, attributes in shown.tags for name in attributes} == {
        name for _, attributes in plain.tags for name in attributes
    }
    assert not re.search(r"https?:|@import|url\(", shown.source)
    policy = next(a["content"] for tag, a in shown.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy


def test_it_is_written_atomically_without_local_paths(tmp_path):
    write(tmp_path / "a.html", FOUND, "a b", tmp_path / "small" / "softmax")
    assert (tmp_path / "a.html").read_text() == page(FOUND, "a b", "small/softmax")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    with pytest.raises(FolderError, match=r"^/proc/a.html: "):
        write("/proc/a.html", FOUND, "a b", tmp_path)
