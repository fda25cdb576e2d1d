import numpy as np
import pytest

from attnlab.lab.runs.examples import examples
from attnlab.lab.runs.run_folder import FolderError, RunFolder

ONE = {"source": ["a", "b"], "target": ["x"], "layers": [[[[0.25, 0.75]]]]}


def test_several_examples_and_the_single_one_of_an_older_run(tmp_path):
    run = RunFolder(tmp_path)
    assert examples(run) is None
    run.write("maps", {"kind": "cross", "examples": [ONE, {**ONE, "source": ["c"], "layers": [[[[None]]]]}]})
    first, second = examples(run)
    assert (first.source, first.target, first.layers.shape) == (["a", "b"], ["x"], (1, 1, 1, 2))
    np.testing.assert_array_equal(second.layers, np.zeros((1, 1, 1, 1)))
    run.write("maps", {"kind": "cross", **ONE})
    (only,) = examples(run)
    np.testing.assert_array_equal(only.layers, first.layers)


@pytest.mark.parametrize(
    ("maps", "complaint"),
    [
        ({}, "source and target must be lists"),
        ({"examples": 1}, "examples must be a list"),
        ({"examples": [1]}, "source and target must be lists"),
        ({"examples": [{**ONE, "layers": [1, [2]]}]}, r"layers must be numbers \[L H T S\]"),
        ({"examples": [{**ONE, "target": ["x", "y"]}]}, r"layers have shape \[1, 1, 1, 2\], expected \[L, H, 2, 2\]"),
        ({"examples": [{**ONE, "source": [], "layers": [[[[]]]]}]}, "layers have shape"),
        (
            {"examples": [ONE, {**ONE, "layers": ONE["layers"] * 2}]},
            "all examples must have the same number of layers and heads",
        ),
    ],
)
def test_malformed_examples_are_named(tmp_path, maps, complaint):
    run = RunFolder(tmp_path)
    run.write("maps", maps)
    with pytest.raises(FolderError, match=f"maps.json: {complaint}"):
        examples(run)
