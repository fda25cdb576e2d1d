import numpy as np

from attnlab.lab.reporting.curves import FEWEST, POINTS, curve, points_of
from attnlab.lab.results.outcome import Outcome
from attnlab.lab.statistics import interval


def run(values, steps=None, rate=0.1, key="loss", chosen=0.1):
    """Returns an outcome that recorded values[n, seed] at steps[n]. None stands for a step without a value."""
    steps = range(1, len(values) + 1) if steps is None else steps
    rows = [
        {"step": step, "seed": seed, "learning_rate": rate, key: value}
        for step, row in zip(steps, values, strict=True)
        for seed, value in enumerate(row)
    ]
    return Outcome("a", {}, {}, {"learning_rate": chosen}, {}, rows, (), ())


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


def test_a_seed_with_nonfinite_values_is_excluded_from_the_mean():
    found = curve(run([[1.0, 2.0, 5.0], [1.0, 2.0, None], [1.0, 2.0, None]]), "loss")
    assert found.values.shape == (3, 2)
    ((steps, values),) = found.cut
    assert (steps.tolist(), values.tolist()) == ([1], [5])


def test_a_diverged_seed_with_finite_values_is_excluded_from_the_mean():
    found = run([[1.0, 5.0], [1.0, 6.0], [1.0, 6.0]])
    found.result["diverged"] = [{"seed": 1, "step": 2, "learning_rate": 0.1}]
    drawn = curve(found, "loss")
    assert drawn.values.tolist() == [[1], [1], [1]]
    ((steps, values),) = drawn.cut
    assert (steps.tolist(), values.tolist()) == ([1, 2], [5, 6])
    # With another learning rate, the entry belongs to another lane.
    found.result["diverged"][0]["learning_rate"] = 0.2
    assert curve(found, "loss").values.shape == (3, 2)
    found.result["diverged"] = [{"seed": seed, "step": 0, "learning_rate": 0.1} for seed in (0, 1)]
    assert curve(found, "loss") is None


def test_five_seeds_have_intervals_and_one_has_none():
    row = [1.0, 2.0, 4.0, 5.0, 7.0]
    low, high = curve(run([row]), "loss").band()
    assert (low[0], high[0]) == interval(row)
    assert curve(run([[1.0], [2.0]]), "loss").band() is None


def test_many_steps_are_averaged_together():
    found = curve(run([[float(n)] for n in range(1000)]), "loss")
    assert len(found.steps) <= POINTS
    # The means of equal bins of a straight line lie on that line, including that of the last bin.
    np.testing.assert_allclose(found.values[:, 0], found.steps - 1)
    assert found.steps[-1] > 990


def test_an_interval_of_positive_values_ends_at_the_smallest():
    row = [0.001, 0.001, 0.001, 0.001, 1.0]
    assert interval(row)[0] < 0
    assert curve(run([row]), "loss").band()[0].tolist() == [0.001]
    # An interval of values that may be negative is not changed.
    mixed = [-0.001, *row]
    assert curve(run([mixed]), "loss").band()[0][0] == interval(mixed)[0]


def test_many_curves_have_fewer_points_each():
    """Checks that the points per curve decrease. Otherwise, a page of 300 variants would take megabytes."""
    assert [points_of(count) for count in (0, 2, 40, 80, 300, 10_000)] == [POINTS, POINTS, POINTS, 80, 21, FEWEST]
    found = run([[float(n), float(n)] for n in range(1000)])
    assert len(curve(found, "loss").steps) <= POINTS
    few = curve(found, "loss", 25)
    assert len(few.steps) == 25
    np.testing.assert_allclose(few.values.mean(), np.arange(1000).mean())
