import numpy as np

from attnlab.data.graphs import cora


def test_the_graph_and_the_parts_are_the_published_ones(published):
    folder = published("cora")
    graph, parts = cora.parts()
    assert (len(graph.labels), len(graph.edges), graph.features, len(graph.entries)) == (2708, 2 * 5278, 1433, 49216)
    assert graph.notes == ("5127 edges have one direction only and are used in both directions",)
    assert {part: len(nodes) for part, nodes in parts.items()} == {"train": 140, "valid": 500, "test": 1000}
    np.testing.assert_array_equal(np.bincount(graph.labels[parts["train"]]), [20] * 7)
    assert 0.318 < np.bincount(graph.labels[parts["test"]]).max() / 1000 < 0.320
    if (order := folder / "planetoid_order.tsv").is_file():
        rows = [line.split("\t") for line in order.read_text().splitlines()[1:]]
        for part, name in (("train", "train"), ("valid", "val"), ("test", "test")):
            assert sorted(int(row[2]) for row in rows if row[4] == name) == parts[part].tolist()
        assert {row[1]: int(row[2]) for row in rows} == {name: n for n, name in enumerate(graph.names)}
