import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text import parallel
from attnlab.data.text.corpus import Limit
from attnlab.data.text.example import Example

TABLE = "ein hund\ta dog\nzwei katzen\ttwo cats\n"
PAIRS = [Example("ein hund", ("a dog",)), Example("zwei katzen", ("two cats",))]


@pytest.fixture
def two(write):
    """Returns a function that writes two files and returns their paths as one field."""
    return lambda source, target: f"{write('a.de', source)},{write('b.en', target)}"


def one_line(error) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["own.tsv", "own.tsv.gz"])
def test_a_file_of_two_columns(write, name):
    corpus = parallel.pairs(write(name, TABLE))
    assert corpus.examples == PAIRS
    assert corpus.lines == [1, 2]
    assert corpus.empty == corpus.longer == corpus.notes() == []


def test_two_files_line_by_line_either_of_them_gzipped(write):
    source, target = write("a.de", "ein hund\nzwei katzen\n"), write("b.en.gz", "a dog\ntwo cats\n")
    assert parallel.pairs(f"{source},{target}").examples == PAIRS


@pytest.mark.parametrize(
    "table",
    [
        TABLE[:-1],
        "\ufeff" + TABLE,
        TABLE.replace("\n", "\r\n"),
        "\ufeff" + TABLE.replace("\n", "\r\n")[:-2],
        TABLE.replace("\t", "  \t "),
    ],
)
def test_byte_order_marks_and_line_ends_of_editors_are_accepted(write, two, table):
    assert parallel.pairs(write("own.tsv", table)).examples == PAIRS
    bom = "\ufeff" * table.startswith("\ufeff")
    rows = [row.split("\t") for row in table.removeprefix("\ufeff").splitlines(keepends=True)]
    end = "\r\n" if "\r\n" in table else "\n"
    sides = bom + end.join(row[0] for row in rows), bom + "".join(row[1] for row in rows)
    assert parallel.pairs(two(*sides)).examples == PAIRS


def test_only_line_feeds_end_lines(two):
    source = "a\u2028b\nc\x0cd\ne\x85f\n"
    assert [example.source for example in parallel.pairs(two(source, "1\n2\n3\n")).examples] == source.split("\n")[:-1]


def test_any_script_and_spaces_inside_are_kept(write):
    (example,) = parallel.pairs(write("own.tsv", " مرحبا  بالعالم \tkʲ ɪ  t 👩\u200d🚀\n")).examples
    assert example == Example("مرحبا  بالعالم", ("kʲ ɪ  t 👩\u200d🚀",))


def test_lines_empty_on_both_sides_are_left_out_and_counted(write, two):
    for path in (write("own.tsv", "a\tb\n\n \t \n  \nc\td\n"), two("a\n\n\n\t\nc\n", "b\n\n \n\r\nd\n")):
        corpus = parallel.pairs(path)
        assert [(example.source, example.targets) for example in corpus.examples] == [("a", ("b",)), ("c", ("d",))]
        assert corpus.lines == [1, 5]
        assert corpus.empty == [2, 3, 4]
        assert corpus.notes() == [f"{path}: 3 lines (2, 3, 4) are empty and skipped"]


def test_a_line_empty_on_one_side_is_named(write, two):
    with pytest.raises(DataError, match=r"own\.tsv, line 2: the source is empty"):
        parallel.pairs(write("own.tsv", "a\tb\n\tb\n"))
    with pytest.raises(DataError, match=r"own\.tsv, line 3: the target is empty"):
        parallel.pairs(write("own.tsv", "a\tb\n\na\t \n"))
    with pytest.raises(DataError, match=r"a\.de, line 2 is empty, but line 2 of .*b\.en is not"):
        parallel.pairs(two("a\n\n", "b\nb\n"))
    with pytest.raises(DataError, match=r"b\.en, line 2 is empty, but line 2 of .*a\.de is not"):
        parallel.pairs(two("a\na", "b\n\n"))


@pytest.mark.parametrize("read", [parallel.pairs, parallel.read_for_scoring])
def test_lines_empty_on_one_side_can_be_skipped(write, two, read):
    skip = Limit(empty="skip")
    for path in (write("own.tsv", "a\tb\n\tb\n\t\nc\t \nd\te\n"), two("a\n\n\nc\nd\n", "b\nb\n\n \ne\n")):
        corpus = read(path, skip)
        assert corpus.examples == [Example("a", ("b",)), Example("d", ("e",))]
        assert corpus.lines == [1, 5]
        assert corpus.notes() == [
            f"{path}: 1 line (3) is empty and skipped",
            f"{path}: 2 lines (2, 4) with one empty side are skipped",
        ]
    with pytest.raises(DataError, match=r"own\.tsv contains no pairs: 1 line \(1\) with one empty side is skipped$"):
        read(write("own.tsv", "a\t\n"), skip)
    with pytest.raises(DataError, match=r": 1 line \(1\) is longer and skipped, and 1 line \(2\) with one"):
        read(write("own.tsv", "aa\tb\na\t\n"), Limit(1, "skip", "skip"))
    with pytest.raises(ValueError, match=r"^empty='cut' is not known; known: refuse, skip"):
        Limit(empty="cut")


@pytest.mark.parametrize(("row", "tabs"), [("a b", 0), ("a\tb\tc", 2), ("a\t\tb", 2), ("\ta\tb", 2)])
def test_a_row_has_one_tab(write, row, tabs):
    with pytest.raises(DataError, match=rf"own\.tsv, line 3: expected 1 tab, found {tabs}:") as error:
        parallel.pairs(write("own.tsv", f"a\tb\n\n{row}\n"))
    one_line(error)


def test_a_long_row_is_not_printed_whole(write):
    with pytest.raises(DataError, match="expected 1 tab, found 0") as error:
        parallel.pairs(write("own.tsv", "x" * 100_000))
    assert len(one_line(error)) < 300


@pytest.mark.parametrize(
    ("source", "target", "counts"), [("a\nb\n", "c\n", (2, 1)), ("a", "c\n\n", (1, 2)), ("", "c", (0, 1))]
)
def test_files_of_unequal_length_are_refused_with_both_counts(two, source, target, counts):
    with pytest.raises(DataError, match=r"a\.de has {} lines, but .*b\.en has {};".format(*counts)) as error:
        parallel.pairs(two(source, target))
    one_line(error)


def test_invalid_utf8_is_named(write, two):
    with pytest.raises(DataError, match=r"own\.tsv is not UTF-8: byte 4 is 0xe9"):
        parallel.pairs(write("own.tsv", b"a\tb\n\xe9\tc\n"))
    with pytest.raises(DataError, match=r"b\.en is not UTF-8: it begins with the byte-order mark of UTF-16"):
        parallel.pairs(two("a\n", "b\n".encode("utf-16")))


def test_missing_and_damaged_files_are_named(write):
    there = write("a.de", "a\n")
    with pytest.raises(DataError, match=r"none\.en cannot be read: No such file"):
        parallel.pairs(f"{there},none.en")
    packed = write("cut.tsv.gz", TABLE * 1000)
    with open(packed, "r+b") as file:
        file.truncate(50)
    with pytest.raises(DataError, match=r"cut\.tsv\.gz is truncated"):
        parallel.pairs(packed)


@pytest.mark.parametrize("path", ["", "a,b,c", "a,", ",b"])
def test_a_path_is_one_file_or_two(path):
    with pytest.raises(DataError, match="neither a file nor two files separated by a comma"):
        parallel.pairs(path)


def test_a_file_whose_own_name_has_a_comma(write):
    assert parallel.pairs(write("here,there.tsv", TABLE)).examples == PAIRS


@pytest.mark.parametrize("content", ["", "\n", "\ufeff", "\r\n\r\n", " \t \n"])
def test_files_without_pairs_are_refused(write, content):
    with pytest.raises(DataError, match=r"own\.tsv contains no pairs"):
        parallel.pairs(write("own.tsv", content))


LONG = "ab\tcd\n\nabc\tcd\nab\tcdef\n"


def test_a_longer_line_is_refused_with_its_number(write):
    path = write("own.tsv", LONG)
    assert len(parallel.pairs(path).examples) == len(parallel.pairs(path, Limit(4)).examples) == 3
    with pytest.raises(DataError, match=r"own\.tsv, line 3: length 3 exceeds 2"):
        parallel.pairs(path, Limit(2))
    with pytest.raises(DataError, match=r"own\.tsv, line 4: length 4 exceeds 3"):
        parallel.pairs(path, Limit(3))


def test_longer_lines_are_cut_or_left_out_and_nothing_else_is_lost(write):
    path = write("own.tsv", LONG)
    cut = parallel.pairs(path, Limit(2, "truncate"))
    assert cut.examples == [Example("ab", ("cd",))] * 3
    assert (cut.lines, cut.empty, cut.longer) == ([1, 3, 4], [2], [3, 4])
    assert cut.notes()[1] == f"{path}: 2 lines (3, 4) are longer than 2 and truncated"
    left = parallel.pairs(path, Limit(3, "skip"))
    assert left.examples == [Example("ab", ("cd",)), Example("abc", ("cd",))]
    assert (left.lines, left.empty, left.longer) == ([1, 3], [2], [4])
    assert left.notes() == [
        f"{path}: 1 line (2) is empty and skipped",
        f"{path}: 1 line (4) is longer than 3 and skipped",
    ]
    with pytest.raises(DataError, match="contains no pairs"):
        parallel.pairs(path, Limit(1, "skip"))


def test_many_numbers_are_counted(write):
    corpus = parallel.pairs(write("own.tsv", "\n" * 20 + TABLE))
    assert corpus.notes()[0].endswith("20 lines (1, 2, 3, 4, 5 …) are empty and skipped")


def test_a_limit_holds_for_ids_too():
    assert Limit(2, "truncate").kept([[3, 4, 5], [6]], "x") == [[3, 4], [6]]
    assert Limit(3).kept([[3, 4, 5], [6]], "x") == [[3, 4, 5], [6]]
    assert Limit().kept([[3] * 1000, [6]], "x") == [[3] * 1000, [6]]


@pytest.mark.parametrize("fields", [{"longer": "cut"}, {"most": -1}, {"most": 1.5}, {"most": True}])
def test_a_limit_of_another_kind_is_refused(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        Limit(**fields)


@pytest.mark.parametrize("read", [parallel.pairs, parallel.read_for_scoring])
def test_every_pair_too_long_is_reported(write, read):
    path = write("long.tsv", "abcd\tabcdef\nabcde\tab\n\n")
    with pytest.raises(
        DataError, match=r"long\.tsv contains no pairs of length at most 3: 2 lines \(1, 2\) are longer and skipped"
    ):
        read(path, Limit(3, "skip"))
    alone = write("alone.txt", "abcd\n")
    with pytest.raises(DataError, match=r"alone\.txt contains no texts of length at most 3: 1 line \(1\) is longer"):
        parallel.read_for_scoring(alone, Limit(3, "skip"))
