"""Fashion-MNIST: grayscale images of clothes in ten classes, 28 × 28 pixels (Xiao et al. 2017)."""

from attnlab.data.images.labelled import Labelled, checked
from attnlab.data.io.arrays import idx
from attnlab.data.io.published import listed, read

CLASSES = (
    *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)  # fmt: skip

_ADDRESS = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
# File, bytes, sha256 of the gzipped files as they are served.
_TABLE = """
train-images-idx3-ubyte.gz 26421880 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
train-labels-idx1-ubyte.gz 29515 a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
t10k-images-idx3-ubyte.gz 4422102 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
t10k-labels-idx1-ubyte.gz 5148 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
"""
SOURCES = listed("fashion_mnist", _ADDRESS, _TABLE)


def parts() -> dict[str, Labelled]:
    """Returns the published parts: 60,000 images for training and 10,000 for test.

    Raises:
      DataError: as `published.read`.
    """
    found = {file: idx(read(source), file) for file, source in SOURCES.items()}
    arrays, files = [*found.values()], [*found]
    return {"train": checked(arrays[:2], files[:2]), "test": checked(arrays[2:], files[2:])}
