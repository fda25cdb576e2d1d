"""BCCD: photographs of blood cells with a box around each, 640 × 480 (Shenggan and others 2017; MIT licence)."""

from attnlab.data import archives, scenes
from attnlab.data.files import Source, read, text
from attnlab.data.scenes import Scenes

# Its pictures, its annotations, and these as tables; the repository itself serves them one by one.
ARCHIVE = Source(
    set="bccd",
    file="bccd_trainval.tar.gz",
    sha256="78cdae8e398d0b757fd7b48c6299bce71db640de4a12723c55c28e3360ed6a31",
    size=6_011_060,
    url="https://github.com/Shenggan/BCCD_Dataset",
    packed=True,
)
SOURCES = (ARCHIVE,)
CLASSES = ("RBC", "WBC", "Platelets")
TENTH = 10  # of those published to train with every tenth validates here


def parts(size: tuple[int, int]) -> dict[str, Scenes]:
    """The photographs at a size (rows, columns): 184 to train with, 21 to validate, 87 to test.

    The test is what was published as the validation part; what validates is held out of the 205 published to train
    with, so that nothing is chosen by the test. Raises DataError as `files.read` does.
    """
    files = archives.members(read(ARCHIVE), ARCHIVE.file)
    names = {part: text(files[f"bccd/{part}.txt"], part).split() for part in ("train", "val")}
    held = names["train"][::TENTH]
    chosen = {
        "train": ("train", [name for name in names["train"] if name not in held]),
        "valid": ("train", held),
        "test": ("val", names["val"]),
    }
    return {part: _part(files, published, names, size) for part, (published, names) in chosen.items()}


def _part(files: dict[str, bytes], published: str, names: list[str], size: tuple[int, int]) -> Scenes:
    path = f"bccd/{published}_boxes.tsv"
    rows = [row for row in scenes.table(text(files[path], path), path) if row.image in names]
    return scenes.scenes(files, names, rows, CLASSES, size, path)
