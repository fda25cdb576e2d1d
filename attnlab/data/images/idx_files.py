"""A user's IDX files of images and labels, named as those of MNIST."""

from pathlib import Path

from attnlab.data.images import photos
from attnlab.data.images.labelled import Labelled, checked, first_names
from attnlab.data.io import arrays
from attnlab.data.io.files import DataError, user_path

# How the file names of a part begin in a folder.
NAMES = {"train": ("train",), "valid": ("valid", "val"), "test": ("test", "t10k")}


def read_user_images(name: str, part: str) -> Labelled:
    """Reads a user's images and their labels from IDX files, gzipped or plain.

    In a folder, the name of the file begins with the part and contains "images": train-images…, valid-images… (or
    val-…), test-images… (or t10k-…). The labels are in the same folder, under the same name with "labels" for "images"
    and "idx1" for "idx3".

    Args:
      name: an IDX file of images, or a folder that contains one for the part.
      part: "train", "valid" or "test".

    Raises:
      DataError: if a file is missing or damaged, or the files are not images with labels. The message names the file.
    """
    path = chosen(name, part)
    images, labels = arrays.idx(path), _labels(path)
    return checked([images, arrays.idx(labels)], [path, labels])


def chosen(name: str, part: str) -> Path:
    """Returns the file of a part's images: `name` itself, or the file for this part in the folder `name`."""
    path = user_path(name)
    return _within(path, part) if path.is_dir() else path


def holds(folder: str, part: str) -> bool:
    """Whether a user's folder contains one or more files of images for a part."""
    return any(name.startswith(NAMES[part]) for name in _images(user_path(folder)))


def labels_of(images: Path) -> Path | None:
    """Returns the file of the labels next to a file of images, or None if there is none."""
    name = _labels_name(images)
    places = [images.with_name(name), images.with_name(f"{name}.gz")] if "images" in images.name else []
    return next((path for path in places if path.is_file()), None)


def _images(folder: Path) -> list[str]:
    """Returns the names of the image files in a folder. PNG and JPEG files are not counted, whatever their names."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_file() and "images" in path.name)
        return [name for name in names if not name.lower().endswith(photos.SUFFIXES)]
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}") from error


def _within(folder: Path, part: str) -> Path:
    """Returns the file of a part's images in a folder. A plain copy is preferred to a gzipped one."""
    names = _images(folder)
    found = [name for name in names if name.startswith(NAMES[part])]
    found = [name for name in found if name.removesuffix(".gz") == name or name.removesuffix(".gz") not in found]
    expected = " or ".join(f"{start}-images…" for start in NAMES[part])
    if not found:
        present = names or sorted(path.name for path in folder.iterdir())
        raise DataError(
            f"{folder} contains no IDX file {expected}; labels are read from the same name with 'labels' instead of "
            f"'images'; found: {first_names(present) or 'nothing'}"
        )
    if len(found) > 1:
        raise DataError(f"{folder} contains several files {expected}: {', '.join(found)}; specify one of them")
    return folder / found[0]


def _labels(images: Path) -> Path:
    """Returns the file of the labels of a file of images; raises DataError if there is none."""
    if "images" not in images.name:
        raise DataError(
            f"{images}: expected a file name with 'images'; labels are read from the same name with 'labels' instead"
        )
    if (found := labels_of(images)) is not None:
        return found
    name = _labels_name(images)
    raise DataError(f"{images} has no labels; expected {name} or {name}.gz in the same folder")


def _labels_name(images: Path) -> str:
    """Returns the name of the plain file of the labels of a file of images."""
    return images.name.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1").removesuffix(".gz")
