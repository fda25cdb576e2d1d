"""Checks that a file name is the same text in every locale, and opens the same file."""

import os
import subprocess
import sys

import pytest

from attnlab.storage.file_names import as_name, as_text

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
OPEN = """
import sys
from attnlab.data.io.files import user_text
from attnlab.lab.study import serialize
from attnlab.storage.file_names import as_text
from attnlab.storage.json_file import encode_json, loads
from attnlab.tasks import Scan
from pathlib import Path

written = serialize.write(Scan(train=sys.argv[1]))
record = loads(encode_json(written), {}, "record")
assert record == written
print(ascii(serialize.read(record, Scan).train), user_text(sys.argv[1]), user_text(record["fields"]["train"]))
"""


@pytest.mark.parametrize("locale", [ASCII, {}], ids=["ascii", "utf-8"])
@pytest.mark.parametrize(("name", "text"), [("dä".encode(), "d\\xe4"), (b"d\xe4", "d\\udce4")])
def test_a_stored_path_is_the_same_in_every_locale_and_opens_the_file(tmp_path, locale, name, text):
    (tmp_path / os.fsdecode(name)).write_text("found")
    done = run(OPEN, tmp_path, locale, name)
    assert (done.stdout.decode(), done.returncode) == (f"'{text}' found found\n", 0), done.stderr.decode()


def test_text_that_is_no_name_is_unchanged():
    for text in ("", "a", "日", "\ud800"):
        assert as_text(text) == text
        assert as_name(text) == text


PICTURES = """
from pathlib import Path
from attnlab.data.images.listing import folder, table

((found,), _) = folder(Path("pictures"))
print(ascii((found.name, found.label)))
(found,) = table(Path("table.tsv"))
print(ascii((found.name, found.label)), found.path.read_bytes())
"""


@pytest.mark.parametrize("locale", [ASCII, {}], ids=["ascii", "utf-8"])
def test_pictures_have_the_same_names_and_classes_in_every_locale(tmp_path, locale):
    (tmp_path / "pictures" / "ä").mkdir(parents=True)
    (tmp_path / "pictures" / "ä" / "ö.png").write_bytes(b"found")
    (tmp_path / "table.tsv").write_text("pictures/ä/ö.png\tä\n", encoding="utf-8")
    done = run(PICTURES, tmp_path, locale)
    lines = ["('\\xe4/\\xf6.png', '\\xe4')", "('pictures/\\xe4/\\xf6.png', '\\xe4') b'found'"]
    assert (done.stdout.decode().splitlines(), done.returncode) == (lines, 0), done.stderr.decode()


def run(code, folder, locale, *arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | locale
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, env=environment, capture_output=True)
