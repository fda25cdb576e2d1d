"""BCCD: photographs of blood cells with a box around each, 640 × 480 (Shenggan and others 2017; MIT licence)."""

from collections.abc import Iterator
from xml.etree import ElementTree

from attnlab.data.images import scenes
from attnlab.data.images.scenes import CORNERS, SIZE, Row, Scenes
from attnlab.data.io.bundles import Bundle, Files
from attnlab.data.io.files import given, text

CLASSES = ("RBC", "WBC", "Platelets")
TENTH = 10  # of those published to train with every tenth validates here
PUBLISHED = ("train", "val")


def _chosen(files: Files) -> Iterator[str]:
    """The lists of the published parts, the photographs in them and what is said of each; the published test is not."""
    if lists := [f"{part}.txt" for part in PUBLISHED if f"{part}.txt" in files]:
        yield from lists
        for name in lists:
            yield from (f"{each}{suffix}" for each in _listed(files, name) for suffix in (".jpg", ".xml"))


def _listed(files: Files, name: str) -> list[str]:
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
    """The photographs at a size (rows, columns): 184 to train with, 21 to validate, 87 to test.

    The test is what was published as the validation part; what validates is held out of the 205 published to train
    with, so that nothing is chosen by the test. Raises DataError as `Bundle.read` does.
    """
    files = CELLS.read()
    train, test = (_listed(files, f"{part}.txt") for part in PUBLISHED)
    held = train[::TENTH]
    chosen = {"train": [name for name in train if name not in held], "valid": held, "test": test}
    return {part: _part(files, names, size) for part, names in chosen.items()}


def _part(files: dict[str, bytes], names: list[str], size: tuple[int, int]) -> Scenes:
    rows = [row for name in names for row in _rows(name, files[f"{name}.xml"])]
    return scenes.scenes(files, names, rows, CLASSES, size, CELLS.file)


def _rows(name: str, content: bytes) -> Iterator[Row]:
    """The boxes of a photograph, as Pascal VOC writes them; the file is a verified one."""
    root = ElementTree.fromstring(content)
    number = lambda tag, inside: float(inside.findtext(f".//{tag}"))
    size = tuple(number(tag, root) for tag in SIZE)
    for n, each in enumerate(root.iter("object"), start=1):
        yield Row(n, name, str(each.findtext("name")), tuple(number(tag, each) for tag in CORNERS), size)
