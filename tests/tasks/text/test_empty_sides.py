"""Checks lines of your own files with one empty side, in every task that reads lines of two sides."""

from dataclasses import replace

import pytest

from attnlab import TASKS
from attnlab.data.io.files import DataError
from attnlab.tasks import CMUdict, Documents, Parallel, Scan, Sentences, Sigmorphon
from attnlab.tasks.text.pair_task import PairTask
from attnlab.tasks.text.sentences import SentenceTask

WORDS = ["ab1", "cd1", "ef1", "gh1", "ij1", "kl1"]  # 1 stands for a letter of the part, so that no line is in two
SENTENCES = [f"{'up' if n % 2 else 'down'}\t{word} {word}" for n, word in enumerate(WORDS)]
# The lines of each task, and one line with an empty side.
LINES = {
    "parallel": (Parallel(), [f"{word}\t{word[::-1]}" for word in WORDS], "xy\t"),
    "sigmorphon": (Sigmorphon(), [f"{word}\t{' '.join(word)}" for word in WORDS], "\tx y"),
    "cmudict": (CMUdict(), [f"{word} {' '.join(word.upper())}" for word in WORDS], "xy"),
    "scan": (Scan(), [f"IN: {word} OUT: {word.upper()}" for word in WORDS], "IN: xy OUT:"),
    "sentences": (Sentences(), SENTENCES, "up\t"),
    "documents": (Documents(text="own", shortest=4, longest=6), SENTENCES, "\txy"),
}


@pytest.mark.parametrize("name", LINES)
def test_empty_sides_are_refused_or_skipped_with_a_note(name, tmp_path):
    task, lines, half = LINES[name]
    files = {part: str(tmp_path / part) for part in ("train", "valid", "test")}
    for n, path in enumerate(files.values()):
        with open(path, "w") as file:
            content = [line.replace("1", "xyz"[n]) for line in lines]
            file.write("\n".join([content[0], half, *content[1:]]))
    task = replace(task, **files)
    with pytest.raises(DataError, match=r"train, line 2: .*; task\.empty=skip "):
        task.load()
    notes = replace(task, empty="skip").load().notes
    assert [note for note in notes if "empty" in note] == [
        f"{path}: 1 line (2) with one empty side is skipped" for path in files.values()
    ]


def test_every_pair_and_classification_task_has_the_field():
    for name, task in TASKS.items():
        if isinstance(task, PairTask | SentenceTask):
            assert task.empty == "refuse", name
            with pytest.raises(ValueError, match=r"^task\.empty='cut' is not known; known: refuse, skip"):
                replace(task, empty="cut")
