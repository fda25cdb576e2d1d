import struct

import numpy as np

from attnlab.lab.reporting.curves import Curve
from attnlab.lab.reporting.pictures import answer, learning
from tests.lab.made import outcome


def size(png):
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


def test_the_answer_grows_with_its_variants_and_is_the_same_each_time():
    found = [outcome(f"v{n}", [0.9, 0.8], order=n) for n in range(9)]
    assert size(answer(found))[1] > size(answer(found[:2]))[1]
    assert answer(found[:2]) == answer(found[:2])
    assert answer([outcome("a", []), outcome("b", [None])]) is None


def test_names_that_no_font_has_are_drawn_without_a_word():
    # Mathematics, letters that are missing, controls, a lone surrogate, and more than has room.
    names = ["$\\frac{1}$", "\u0301", "\u202e\n\x00", "\ud800", "日" * 99, "_hidden"]
    found = [outcome(name, [0.9, 0.8], order=n) for n, name in enumerate(names)]
    assert size(answer(found))
    curves = [Curve(name, n, np.arange(3), np.ones((3, 2)), ()) for n, name in enumerate(names)]
    assert size(learning([("loss", "loss $x", curves), ("valid.exact_match", "exact match", curves)]))
    assert learning([]) is None
