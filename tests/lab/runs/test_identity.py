import pytest

from attnlab.lab.runs.identity import read_file
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.storage import json_file

REMOVE = "remove only that file, and attnlab run "
AGAIN = "train the run again in another folder: attnlab run with --out DIR"


@pytest.mark.parametrize(
    ("name", "others", "words"),
    [
        ("result", ["checkpoints/3"], REMOVE + "evaluates the last checkpoint again"),
        ("result", [], AGAIN),
        ("result", ["checkpoints/.3.growing"], AGAIN),
        ("vocabulary", ["checkpoints/3"], REMOVE + "writes it again from the data"),
        ("vocabulary", ["checkpoints/3", "result.json"], AGAIN),
        ("experiment", ["checkpoints/3"], AGAIN),
    ],
)
def test_the_refusal_of_a_damaged_file_advises_what_recovers_the_run(tmp_path, name, others, words):
    (tmp_path / f"{name}.json").write_text("{")
    for other in others:
        (tmp_path / other).mkdir(parents=True)
    with pytest.raises(FolderError, match=rf"{name}\.json: not JSON: .*; {words}$"):
        read_file(RunFolder(tmp_path), name)


@pytest.mark.parametrize("found", [1, 3])
def test_the_refusal_of_another_format_does_not_advise_to_delete_the_intact_run(tmp_path, found):
    folder = RunFolder(tmp_path)
    folder.file("experiment").write_bytes(json_file.dump_with_checksum({"format": found}, 1, b"experiment"))
    with pytest.raises(FolderError, match=rf"format {found}, expected 2; use .* to read this run; {AGAIN}$"):
        read_file(folder, "experiment")
