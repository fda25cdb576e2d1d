"""SCAN: commands and the actions they mean, in splits that test composition (Lake and Baroni 2018)."""

from collections import Counter
from collections.abc import Iterator

from attnlab.data.io.files import DataError, text, user_text
from attnlab.data.io.published import listed, read
from attnlab.data.names import check
from attnlab.data.text.corpus import SKIPPING
from attnlab.data.text.example import Example, Parts, shuffled

SPLITS = ("simple", "length", "addprim_jump", "addprim_turn_left")

# The address names a branch and not a commit; the hashes below identify the version.
_ADDRESS = "https://raw.githubusercontent.com/brendenlake/SCAN/master"

# Path, bytes, sha256.
_TABLE = """
simple_split/tasks_train_simple.txt 3267938 941bb8a088c5f53ceff12fde902dc008933cf0c4203cc672c47b5f79d73262dd
simple_split/tasks_test_simple.txt 812450 1fe1c8f5a19d0dc40e41bab94278f45f66f3dc415a978bd29855a23440610fc6
length_split/tasks_train_length.txt 2723418 b034212dc7cf87ce62f3a067dd6ad49c4d5cd18d51d615d13825516bcb1ebbc2
length_split/tasks_test_length.txt 1356970 0760752ed34a75116ae11dcc1ee17526b7500060da1366540730fa24894d7db3
add_prim_split/tasks_train_addprim_jump.txt 2579619 e3c78485692e028eed4205e1b8b3fd0e785ef2c12d45b5b89204dadf5b239e23
add_prim_split/tasks_test_addprim_jump.txt 1531555 8147ae2651422c701162e174d9d66158daa57858a26b30317ac61797118ac7a5
add_prim_split/tasks_train_addprim_turn_left.txt 3974537 1b3fed86055dd7689d217f1b90cc8960aeb1cf200f4f209dc47935761b05304c
add_prim_split/tasks_test_addprim_turn_left.txt 173679 15a82c2d25ac7c3c1fff7e18051fb085974ef3617de895c520d02144396a10e2
"""  # noqa: E501

SOURCES = listed("scan", _ADDRESS, _TABLE)


def parts(split: str) -> Parts:
    """Returns the parts of a split. The symbols of both sides are words.

    The test part is the published one. There is no published validation part, so a tenth of the training lines, rounded
    down, is held out. These lines are drawn in a fixed order from the commands that occur once. No command is therefore
    in both parts. The primitive that a split adds is repeated on about a tenth of the lines, and stays in training.

    Raises:
      ValueError: if the split is not known.
      DataError: as `published.read`.
    """
    check("split", split, SPLITS)
    lines, test = (shuffled(_examples(f"tasks_{part}_{split}.txt")) for part in ("train", "test"))
    times = Counter(example.source for example in lines)
    once = [n for n, example in enumerate(lines) if times[example.source] == 1]
    held = set(once[: len(lines) // 10])
    return {
        "train": [example for n, example in enumerate(lines) if n not in held],
        "valid": [lines[n] for n in sorted(held)],
        "test": test,
    }


def rows(content: str, path: str, half: list[int] | None = None) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yields the command and the actions of each line.

    A line is "IN: walk twice OUT: I_WALK I_WALK", or a command, a tab and its actions, without these marks.

    Args:
      content: the text.
      path: the file it comes from, used in messages.
      half: if given, lines with one empty side are left out, and their numbers are appended to this list.

    Raises:
      DataError: if a line is not of this form, or one side is empty and `half` is not given. The message names the path
        and the line.
    """
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        first, *words = line.split()
        sides = [tuple(side.split()) for side in line.split("\t")]
        if first != "IN:" and len(sides) == 2 and all(sides):
            yield sides[0], sides[1]
            continue
        marked = first == "IN:" and words.count("OUT:") == 1
        lacking = words[0] == "OUT:" or words[-1] == "OUT:" if marked else first != "IN:" and len(sides) == 2
        if lacking and half is not None:
            half.append(number)
            continue
        if lacking or not marked:
            form = "'IN: command OUT: actions', or a command, a tab and its actions"
            raise DataError(f"{path}, line {number}: expected {form}, got {line!r}{SKIPPING if lacking else ''}")
        middle = words.index("OUT:")
        yield tuple(words[:middle]), tuple(words[middle + 1 :])


def read_user_file(path: str, half: list[int] | None = None) -> list[Example]:
    """Reads the examples of a user's file, gzipped if its name ends in .gz, and returns them in a fixed random order.

    Args:
      path: the file.
      half: as in `rows`.

    Raises:
      DataError: if the file is missing, damaged, not UTF-8, empty or not of the format.
    """
    if not (found := [Example(command, (actions,)) for command, actions in rows(user_text(path), path, half)]):
        raise DataError(f"{path} contains no commands")
    return shuffled(found)


def is_marked(path: str) -> bool:
    """Returns whether a line of a user's file begins with the mark "IN:"; raises DataError as `read_user_file`."""
    return any(line.split()[:1] == ["IN:"] for line in user_text(path).split("\n"))


def read_for_scoring(path: str, half: list[int] | None = None) -> list[Example]:
    """Reads a user's file as `read_user_file` does, in the order of its lines. Both sides of an example are texts."""
    found = rows(user_text(path), path, half)
    if not (examples := [Example(" ".join(command), (" ".join(actions),)) for command, actions in found]):
        raise DataError(f"{path} contains no commands")
    return examples


def _examples(file: str) -> list[Example]:
    """Returns the examples of a published file."""
    return [Example(command, (actions,)) for command, actions in rows(text(read(SOURCES[file]), file), file)]
