import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from matplotlib.colors import to_rgb

from attnlab.lab.reporting.curve_svg import MANY, learning_curves, panel
from attnlab.lab.reporting.curves import curve
from attnlab.lab.reporting.figure_svg import Paint
from attnlab.plotting import canvas
from tests.lab.metrics import declared
from tests.lab.reporting.test_curves import run


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ([[1.0]], "loss"),
        ([[0.0, 0.0], [0.0, 0.0]], "loss"),
        ([[3.0, 2.0], [0.01, 0.02]], "loss"),
        ([[-1.0, 1e99], [2.0, -1e99]], "loss"),
        ([[1.0, 1.0], [1.0, 1.0]], "valid.exact_match"),
        ([[1.0, None], [None, 2.0]], "loss"),
    ],
)
def test_any_values_give_a_figure(values, key):
    drawn = learning_curves([curve(run(values, key=key), key)], declared(key.removeprefix("valid.")), "<label>")
    assert drawn.startswith("<svg ")
    assert drawn.endswith("</svg>")
    assert 'aria-label="&lt;label&gt;"' in drawn
    assert "nan" not in drawn
    assert not re.search("http|<style|<metadata|DOCTYPE|<script", drawn)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([[1.0], [0.0005]], {"1", "0.1", "0.01", "0.001"}),
        ([[0.125], [0.127]], {"0.1250", "0.1255", "0.1270"}),
    ],
)
def test_tick_labels_are_complete(values, ticks):
    drawn = learning_curves([curve(run(values), "loss")], declared("loss"), "x")
    assert ticks <= set(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))


@pytest.mark.parametrize(
    ("key", "highest"), [("valid.exact_match", 1.0), ("valid.phoneme_error_rate", 3.0), ("loss", 3.0)]
)
def test_an_interval_is_clipped_at_the_range_and_not_before(key, highest):
    axes = canvas(5, 3).add_subplot()
    panel(
        axes,
        [curve(run([[0.5, 3.0], [0.5, 3.0]], key=key), key)],
        declared(key.removeprefix("valid.")),
        Paint("black", "grey", ("black",) * 8),
    )
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 1].max() == highest


@pytest.mark.parametrize("count", [3, 9])
def test_each_curve_with_several_seeds_has_a_band_of_its_colour(count):
    axes, colors = canvas(5, 3).add_subplot(), ("r", "g", "b", "c", "m", "y", "k", "orange")
    curves = [curve(run([[3.0, 2.0], [1.0 + n, 2.0], [1.0, 4.0]]), "loss") for n in range(count)]
    curves = [replace(one, order=n) for n, one in enumerate(curves)]
    alone = curve(run([[3.0], [1.0], [2.0]]), "loss")  # one seed has no spread
    panel(axes, [*curves, replace(alone, order=count)], declared("loss"), Paint("black", "grey", colors))
    (bands,) = axes.collections
    assert bands.get_facecolors().tolist() == [
        [*to_rgb(colors[n % 8]), 0.06 if count > MANY - 1 else 0.18] for n in range(count)
    ]
    for one, path in zip(curves, bands.get_paths(), strict=True):
        low, high = one.band()
        drawn = {tuple(vertex) for vertex in path.vertices}
        assert drawn == {*zip(one.steps, low, strict=True), *zip(one.steps, high, strict=True)}
    # The axis covers all bands.
    bottom, top = axes.get_ylim()
    assert bottom <= min(one.band()[0].min() for one in curves)
    assert top >= max(one.band()[1].max() for one in curves)
    panel(axes := canvas(5, 3).add_subplot(), [alone], declared("loss"), Paint("black", "grey", colors))
    assert not axes.collections


def test_a_figure_is_the_same_each_time_and_takes_the_page_s_colours():
    curves = [curve(run([[3.0, 2.0], [1.0, 2.0]]), "loss")]
    drawn = learning_curves(curves, declared("loss"), "x")
    assert learning_curves(curves, declared("loss"), "x") == drawn
    assert "var(--v0)" in drawn
    assert not re.search("#[0-9a-f]{6}", drawn.replace("#000000", ""))
    assert "<text" in drawn


def test_messages_of_matplotlib_about_caches_are_not_printed(tmp_path):
    (tmp_path / "file").write_text("")
    code = (
        "import numpy as np; from attnlab.lab.reporting.curves import Curve;"
        "from attnlab.lab.reporting.curve_svg import learning_curves;"
        "from attnlab.console.metric import Metric;"
        "learning_curves([Curve('a', 0, np.arange(3), np.ones((3, 1)), ())], Metric('loss'), 'x')"
    )
    environment = os.environ | {"MPLCONFIGDIR": str(tmp_path / "file"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
