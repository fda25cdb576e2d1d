"""Maps with sliders: packed weights can be unpacked, and omitted maps are counted."""

import re
import zlib
from base64 import b64decode

import numpy as np

from attnlab.lab.reporting.map_viewer import ROOM, map_viewer
from attnlab.lab.runs.examples import Example


def example(T=2, S=3, L=2, H=2, seed=0):
    layers = np.random.default_rng(seed).uniform(-1, 1, (L, H, T, S)).round(4)
    return Example([f"s{n}" for n in range(S)], list("abcdefgh" * 20)[:T], layers)


def test_weights_are_stored_to_three_digits():
    examples = [example(), example(T=4, seed=1)]
    packed = re.findall(r'data-weights="([^"]*)"', map_viewer(examples, "map"))
    for text, one in zip(packed, examples, strict=True):
        found = np.frombuffer(zlib.decompress(b64decode(text)), "<i4").reshape(one.layers.shape) / 1000
        np.testing.assert_allclose(found, one.layers, atol=0.0005001)


def test_without_scripts_the_first_map_is_shown():
    markup = map_viewer([example(), example(T=4, seed=1)], "map")
    assert markup.count('class="still"') == 1
    assert re.findall(r'<div class="(\w+)"[^>]*( hidden)>', markup) == [("sliders", " hidden"), ("example", " hidden")]
    # The drawing shows the last layer as mean over heads, with one stroke per cell or run of cells.
    strokes = re.search(r'class="still">(.*?)</g>', markup)[1]
    mean = example().layers[-1].mean(0)
    assert strokes.count("M") <= np.count_nonzero(mean)
    assert 'class="less"' in strokes


def test_there_is_a_slider_for_each_choice_with_several_values():
    def ranges(*examples):
        return re.findall(r'min="(\d)" max="(\d)" value="(\d)" step="1"></?', map_viewer(examples, "map"))

    def kinds(*examples):
        return re.findall(r'<input type="range" class="(\w+)"', map_viewer(examples, "map"))

    assert kinds(example(), example()) == ["layer", "head", "example"]
    assert ranges(example(), example()) == [("1", "2", "2"), ("0", "2", "0"), ("1", "2", "1")]
    assert kinds(example(L=1, H=1)) == []
    assert kinds(example(L=1), example(L=1)) == ["head", "example"]


def test_maps_that_do_not_fit_are_counted():
    large = [example(T=90, S=90, L=2, H=4, seed=n) for n in range(3)]
    markup = map_viewer(large, "map")
    assert markup.count("data-weights") == 1
    assert "2 more examples are left out to limit the size of the page." in markup
    # One example is always included, even if it exceeds the limit.
    assert len(re.findall(r'data-weights="([^"]*)"', markup)[0]) > ROOM


def test_words_are_separated_and_letters_are_not():
    assert "<bdi>s0 s1 s2</bdi>" in map_viewer([example()], "map")
    assert "<bdi>ab</bdi>" in map_viewer([example()], "map")
