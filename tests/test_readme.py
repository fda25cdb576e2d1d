"""Checks the statements and commands of the README and of CI."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCS = "\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))


def test_ci_uses_the_test_command_of_the_readme():
    commands = re.findall(r"^    (.*\.venv-test/.*)$", README, re.M)
    assert len(commands) == 2
    assert commands[0].startswith("python3 -m venv --clear .venv-test && ")
    assert commands[1].startswith(".venv-test/bin/python -m pytest ")
    # A page of a code host shows about this many columns.
    assert all(len(command) <= 104 for command in commands)


def test_it_is_one_short_page():
    assert len(README.encode()) <= 9_000
    for path in ("command-line", "data", "reproducibility", "results"):
        assert f"(docs/{path}.md)" in README
    assert "README.md" in (ROOT / ".ci" / "run").read_text()


def test_every_file_and_verb_it_names_exists():
    from attnlab.cli.verbs import VERBS

    for path in re.findall(r"(?<![\w/])(experiments/\w+\.py)", README + DOCS):
        assert (ROOT / path).is_file(), path
    for path in re.findall(r"\]\(([\w/-]+\.md)\)", README):
        assert (ROOT / path).is_file(), path
    assert set(re.findall(r"attnlab (\w+) ", README)) & set(VERBS) == set(VERBS)


def test_its_results_are_those_of_the_page():
    """A study that is trained again changes the page; its row in the README must follow."""
    rows = re.findall(r"^\|.*\d.*\|$", README.split("| question | answer |")[1].split("## ")[0], re.M)
    found = [number for row in rows for number in re.findall(r"(?<![\d.])\d*\.\d+%?(?: \([\d.–]+\))?", row)]
    assert len(rows) == 8
    assert len(found) >= 12
    page = (ROOT / "docs" / "results.md").read_text()
    for number in found:
        assert re.search(rf"(?<![\d.]){re.escape(number)}", page), number


def test_its_python_runs(tmp_path, monkeypatch):
    block = README.split("One call runs any mechanism")[1].split("## ")[0]
    code = "\n".join(line[4:] for line in block.splitlines() if line.startswith("    "))
    scope = {}
    exec(compile(code, "README.md", "exec"), scope)
    assert scope["first"].shape == (2, 1, 4, 16)
    assert scope["y"].shape == (10, 16)
    assert scope["map"].shape == (10, 10)


def test_no_file_contains_local_paths():
    # The words are split so that the test does not find them in this file.
    unwanted = ["/" + "work/", "index" + "-url", "find" + "-links", "/" + "root/"]
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not any(
            part.startswith((".venv", ".git", ".ruff", ".pytest", ".hyp")) or part in ("runs", "build", "__pycache__")
            for part in parts
        ):
            text = path.read_bytes()
            assert not any(word.encode() in text for word in unwanted), path
