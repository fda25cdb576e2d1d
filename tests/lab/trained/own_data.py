"""Writes small files of every kind of task that reads files, and returns a task, a model and the test file."""

import random
from pathlib import Path

import numpy as np

from attnlab.models import Classifier, Detr, Gat, Language, Transformer
from attnlab.models.mlp import MLP
from attnlab.tasks import Boxes, CMUdict, Images, Nodes, Sentences, Sounds, Text
from attnlab.tasks.text.translation import Parallel
from tests.data.audio.test_recordings import put, tone
from tests.data.images.test_idx_files import written
from tests.data.images.test_picture_parts import classes

PARTS = ("train", "valid", "test")
SMALL = {"width": 8, "heads": 2, "layers": 1}
SIZES = {"train": 40, "valid": 10, "test": 12}


def named(folder, ending=""):
    return {part: str(folder / f"{part}{ending}") for part in PARTS}


def lines(folder, ending, line):
    """Writes a file for each part, with lines that a function draws, and returns the paths by part."""
    draw = random.Random(0)
    for part, path in named(folder, ending).items():
        Path(path).write_text("".join(line(draw) + "\n" for _ in range(SIZES[part])))
    return named(folder, ending)


def word(draw):
    return "".join(draw.choice("abc") for _ in range(draw.randint(2, 5)))


def pairs(folder):
    def line(draw):
        one = word(draw)
        return f"{one}\t{one[::-1]}"

    files = lines(folder, ".tsv", line)
    # The last source gets a second target.
    with Path(files["test"]).open("a") as file:
        file.write(f"{Path(files['test']).read_text().split()[-2]}\tb\n")
    return Parallel(**files, metric="exact_match"), Transformer(**SMALL), files["test"]


def pronunciations(folder):
    def line(draw):
        one = word(draw)
        return f"{one} {' '.join(one.upper())}"

    files = lines(folder, ".dict", line)
    return CMUdict(**files), Transformer(**SMALL), files["test"]


def sentences(folder):
    def line(draw):
        kind = draw.choice(["up", "down"])
        return f"{kind} {' '.join(draw.choice(['rises', 'x'] if kind == 'up' else ['falls', 'x']) for _ in range(4))}"

    files = lines(folder, ".txt", line)
    return Sentences(**files), Classifier(**SMALL), files["test"]


def text(folder):
    files = lines(folder, ".txt", lambda draw: " ".join(word(draw) for _ in range(14)))
    return Text(**files, length=16), Language(**SMALL), files["test"]


def images(folder):
    for seed, part in enumerate(PARTS):
        written(folder, part, count=SIZES[part], seed=seed)
    return Images(train=str(folder)), MLP(width=8), str(folder)


def photographs(folder):
    for seed, part in enumerate(PARTS):
        classes(folder / part, count=SIZES[part], kinds=("dry", "wet"), mode="RGB", seed=seed)
    return Images(train=str(folder)), MLP(width=8), str(folder)


def sounds(folder):
    for n, part in enumerate(PARTS):
        for take in range(3):
            put(folder / part / "low" / f"{take}.wav", tone(300 + 20 * take, 8000, 0.1 + 0.01 * n), rate=8000)
            put(folder / part / f"high_{take}.wav", tone(2000 + 50 * take, 8000, 0.1 + 0.01 * n), rate=8000)
    return Sounds(**named(folder), bands=8), Classifier(**SMALL), str(folder / "test")


def scenes(folder):
    from PIL import Image

    draw = np.random.default_rng(0)
    for part in PARTS:
        (folder / part).mkdir(parents=True)
        rows = ["image\tlabel\txmin\tymin\txmax\tymax"]
        for n in range(4):
            Image.fromarray(draw.integers(256, size=(16, 16, 3), dtype=np.uint8)).save(folder / part / f"{n}.png")
            rows.append(f"{n}\t{'cup' if n % 2 else 'pen'}\t2\t3\t{8 + n}\t{9 + n}")
        (folder / part / "boxes.tsv").write_text("\n".join(rows) + "\n")
    return Boxes(**named(folder), rows=16, columns=16), Detr(**SMALL), str(folder / "test")


def graph(path, nodes=60, features=12, labels=None, seed=0, **others):
    """Writes a graph file and returns its path. Each node is linked to the next one and has features of its class."""
    draw = np.random.default_rng(seed)
    kinds = draw.integers(3, size=nodes) if labels is None else labels
    columns = (np.maximum(kinds, 0) * (features // 3) + draw.integers(features // 3, size=nodes)).astype(np.int32)
    arrays = {
        "adj_data": np.ones(nodes - 1), "adj_indices": np.arange(1, nodes), "adj_shape": np.array([nodes, nodes]),
        "adj_indptr": np.minimum(np.arange(nodes + 1), nodes - 1),
        "attr_data": np.ones(nodes), "attr_indices": columns, "attr_shape": np.array([nodes, features]),
        "attr_indptr": np.arange(nodes + 1), "labels": kinds,
    }  # fmt: skip
    np.savez(path, **arrays | others)
    return str(path)


def nodes(folder):
    file = graph(folder / "graph.npz")
    return Nodes(graph=file, each=4, valid_examples=10, test_examples=12), Gat(width=8, heads=2), file


KINDS = {
    "pairs": pairs,
    "pronunciations": pronunciations,
    "sentences": sentences,
    "text": text,
    "images": images,
    "photographs": photographs,
    "sounds": sounds,
    "boxes": scenes,
    "nodes": nodes,
}
