import os
import re
import subprocess
import sys

import numpy as np
import pytest

from attnlab.lab.outcome import Outcome
from attnlab.lab.report.figures import POINTS, curve, draw
from attnlab.lab.statistics import interval


def run(values, steps=None, rate=0.1, key="loss", chosen=0.1):
    """An outcome that recorded values[n, seed] at steps[n]; None is a step without a number."""
    steps = range(1, len(values) + 1) if steps is None else steps
    rows = [
        {"step": step, "seed": seed, "learning_rate": rate, key: value}
        for step, row in zip(steps, values, strict=True)
        for seed, value in enumerate(row)
    ]
    return Outcome("a", {}, {}, {"learning_rate": chosen}, {}, rows, None, ())


def test_a_curve_is_a_table_of_steps_and_seeds():
    found = curve(run([[1.0, 2.0], [3.0, 4.0]], steps=[10, 20]), "loss")
    assert found is not None
    assert found.steps.tolist() == [10, 20]
    assert found.values.tolist() == [[1, 2], [3, 4]]
    low, high = found.band() or (None, None)
    assert (low.tolist(), high.tolist()) == ([1, 3], [2, 4])
    assert curve(run([[1.0]]), "valid.loss") is None


def test_other_learning_rates_are_left_out():
    both = run([[1.0, 2.0]])
    both.rows.extend(run([[7.0, 8.0]], rate=0.2).rows)
    assert curve(both, "loss").values.tolist() == [[1, 2]]


def test_a_seed_that_stops_having_numbers_is_kept_out_of_the_mean():
    found = curve(run([[1.0, 2.0, 5.0], [1.0, 2.0, None], [1.0, 2.0, None]]), "loss")
    assert found.values.shape == (3, 2)
    ((steps, values),) = found.cut
    assert (steps.tolist(), values.tolist()) == ([1], [5])


def test_five_seeds_have_intervals_and_one_has_nothing():
    row = [1.0, 2.0, 4.0, 5.0, 7.0]
    low, high = curve(run([row]), "loss").band()
    assert (low[0], high[0]) == interval(row)
    assert curve(run([[1.0], [2.0]]), "loss").band() is None


def test_many_steps_are_averaged_together():
    found = curve(run([[float(n)] for n in range(1000)]), "loss")
    assert len(found.steps) <= POINTS
    # Means of equal bins of a straight line lie on it, the last bin too.
    np.testing.assert_allclose(found.values[:, 0], found.steps - 1)
    assert found.steps[-1] > 990


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
def test_any_numbers_give_a_figure(values, key):
    drawn = draw([curve(run(values, key=key), key)], key, "<label>")
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
def test_the_numbers_along_the_axes_are_whole(values, ticks):
    drawn = draw([curve(run(values), "loss")], "loss", "x")
    assert ticks <= set(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))


def test_a_figure_is_the_same_each_time_and_takes_the_page_s_colours():
    curves = [curve(run([[3.0, 2.0], [1.0, 2.0]]), "loss")]
    drawn = draw(curves, "loss", "x")
    assert draw(curves, "loss", "x") == drawn
    assert "var(--v0)" in drawn
    assert not re.search("#[0-9a-f]{6}", drawn.replace("#000000", ""))
    assert "<text" in drawn


def test_what_matplotlib_says_of_its_caches_is_not_printed(tmp_path):
    (tmp_path / "file").write_text("")
    code = (
        "from attnlab.lab.report.figures import Curve, draw; import numpy as np;"
        "draw([Curve('a', 0, np.arange(3), np.ones((3, 1)), ())], 'loss', 'x')"
    )
    environment = os.environ | {"MPLCONFIGDIR": str(tmp_path / "file"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
