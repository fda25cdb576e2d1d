import numpy as np
import pytest

from attnlab.data.images import cells
from attnlab.data.images.scenes import notes
from attnlab.data.io.files import DataError


def test_the_published_photographs(published):
    published("bccd")
    parts = cells.parts((24, 32))
    assert {part: len(found.scenes) for part, found in parts.items()} == {"train": 184, "valid": 21, "test": 87}
    names = [scene.name for found in parts.values() for scene in found.scenes]
    assert len(set(names)) == 292
    # 2,805 and 1,138 boxes were published, of which two are points.
    boxes = {part: sum(len(scene.boxes) for scene in found.scenes) for part, found in parts.items()}
    assert boxes["train"] + boxes["valid"] == 2_804
    assert boxes["test"] == 1_137
    assert list(notes(parts, cells.CLASSES)) == [f"{part}: 1 box dropped (no area)" for part in ("valid", "test")]
    labels = np.concatenate([scene.labels for scene in parts["test"].scenes])
    np.testing.assert_array_equal(np.bincount(labels), [967, 87, 83])
    assert {scene.image.shape for found in parts.values() for scene in found.scenes} == {(24, 32, 3)}
    first = parts["test"].scenes[0]
    assert first.name == "BloodImage_00000"
    np.testing.assert_allclose(first.boxes[0], [260 / 640, 177 / 480, 491 / 640, 376 / 480], rtol=1e-6)
    assert first.labels[0] == 1


def test_missing_photographs_say_so(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"^bccd is missing: looked in .*bccd; it is not served as one file"):
        cells.parts((24, 32))
