"""BCCD: photographs of blood cells with bounding boxes, 640 × 480 pixels (Shenggan and others 2017; MIT licence)."""

from collections.abc import Iterator
from xml.etree import ElementTree

from attnlab.data.images import scenes
from attnlab.data.images.scenes import CORNERS, SIZE, Row, Scenes
from attnlab.data.io.bundles import Bundle, Files
from attnlab.data.io.files import given, text

CLASSES = ("RBC", "WBC", "Platelets")
TENTH = 10  # every tenth image of the published training part is held out for validation
PUBLISHED = ("train", "val")


def _chosen(files: Files) -> Iterator[str]:
    """Yields the lists of the published training and validation parts, and their photographs and annotations.

    The published test part is not used.
    """
    if lists := [f"{part}.txt" for part in PUBLISHED if f"{part}.txt" in files]:
        yield from lists
        for name in lists:
            yield from (f"{each}{suffix}" for each in _listed(files, name) for suffix in (".jpg", ".xml"))


def _listed(files: Files, name: str) -> list[str]:
    """Returns the names in the list of a part."""
    return text(given(files[name], name)[0], name).split()


CELLS = Bundle(
    set="bccd",
    file="bccd_trainval.tar.gz",
    url="https://github.com/Shenggan/BCCD_Dataset",
    sha256="80d213e3f88b2f7d96f116cb18705fd18d5846b1e2483bce13d6da7f32e64208",
    chosen=_chosen,
)
SOURCES = (CELLS,)


def parts(size: tuple[int, int]) -> dict[str, Scenes]:
    """Returns the photographs, resized to a size (rows, columns): 184 for training, 21 for validation, 87 for test.

    The test part is the published validation part. The validation part is held out of the 205 published training
    images, so that nothing is selected on the test part.

    Raises:
      DataError: as `Bundle.read`.
    """
    files = CELLS.read()
    train, test = (_listed(files, f"{part}.txt") for part in PUBLISHED)
    held = train[::TENTH]
    chosen = {"train": [name for name in train if name not in held], "valid": held, "test": test}
    return {part: _part(files, names, size) for part, names in chosen.items()}


def _part(files: dict[str, bytes], names: list[str], size: tuple[int, int]) -> Scenes:
    """Returns the scenes of the photographs with these names."""
    rows = [row for name in names for row in _rows(name, files[f"{name}.xml"])]
    return scenes.scenes(files, names, rows, CLASSES, size, CELLS.file)


def _rows(name: str, content: bytes) -> Iterator[Row]:
    """Yields the boxes of a photograph from its Pascal VOC file. The file is verified, so parsing its XML is safe."""
    root = ElementTree.fromstring(content)
    number = lambda tag, inside: float(inside.findtext(f".//{tag}"))
    size = tuple(number(tag, root) for tag in SIZE)
    for n, each in enumerate(root.iter("object"), start=1):
        yield Row(n, name, str(each.findtext("name")), tuple(number(tag, each) for tag in CORNERS), size)
