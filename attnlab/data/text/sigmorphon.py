"""SIGMORPHON 2020, task 1: words of ten languages and their pronunciations in IPA (Gorman et al. 2020)."""

import unicodedata
from collections.abc import Iterator

from attnlab.data.io.files import DataError, text
from attnlab.data.io.published import listed, read
from attnlab.data.text.corpus import SKIPPING
from attnlab.data.text.example import Parts
from attnlab.data.text.words import Phones, examples, group

LANGUAGES = ("ady", "arm", "bul", "dut", "geo", "gre", "hin", "hun", "jpn", "lit")
PARTS = {"train": "train", "valid": "dev", "test": "test"}

# The address names a branch and not a commit; the hashes below identify the version.
_ADDRESS = "https://raw.githubusercontent.com/sigmorphon/2020/master/task1/data"

# Path, bytes, sha256.
_TABLE = """
train/ady_train.tsv 116737 8ab54e92ecf5245ea2ed9a5677df890a3917372fb928e44c1df9b954ffe3c010
dev/ady_dev.tsv 14298 3a540e30adf286a226ab9faea9b0b08cf0726e8549cdbe8414ae1028a7f1f14f
test/ady_test.tsv 14553 f873313ebf8afc63b55b8a2421225c4981b8556b88c6090bad7f8e362587aa59
train/arm_train.tsv 119328 881b301408460b84443a768b697c7c1e5895994b6157daa3752a4078e088253b
dev/arm_dev.tsv 15533 13ac315cb0025b243455ec44b5c68a9b6b888071f85028a4b64f749fd6996bcf
test/arm_test.tsv 15271 9957ae5d42f94fa9ae5ffe1737e75efe878b57034f3c40e68b4098f0654e82c4
train/bul_train.tsv 127319 726c92b03b5f6e8d414d407141cb82a4782fdac7ef9c7bd3be3c91a5a650bb1f
dev/bul_dev.tsv 16134 813ac9f3983ad80538ea9aca5d4cc3cfe6308a27cc63076564c043f2650ae62c
test/bul_test.tsv 15715 4e05ff7a239bda2ca83e6d167ce1497855f77c94a153892bbe1c9698346a6810
train/dut_train.tsv 106671 ee825c27cf5cc82a097819bdd6ae50900e449e49504fa3c1d06b318301ef28aa
dev/dut_dev.tsv 12938 bb86ff20577e0c9706ce3aa88d2ea5963032212bc92facef251ba435f3eb791f
test/dut_test.tsv 12846 f84dde7d2af37aabbb492bf8862be1e69bbe2b95e16728452775fd902cf94197
train/geo_train.tsv 158326 5a9d9cadc41e6c514be51eb257f7005dea67f8a528db3f839cd9bc8f9799caf5
dev/geo_dev.tsv 19203 2f0b707103648fb09c04084a8f60a1307cf14b4bfd5d5892664ba32920604e59
test/geo_test.tsv 19818 f5d2c616ae5800bb958cc03965179c588176356668e7b018fff21a9135f9a588
train/gre_train.tsv 122366 acc3450422d1d44e5d596d6b5092919ebf5e0f8a26ddde4ccac7aa9dec1e0996
dev/gre_dev.tsv 15616 bac8a18261aa39e125db95423cc33dfaa60683d72eb2b0bb933f2f66b913c7a9
test/gre_test.tsv 14904 a10265ed5370a687f2bc840d5ac7338c53b36b044d71e2bcfa0b359094f9fd2f
train/hin_train.tsv 129481 74c5359152b21349bafafdc280b9f7ac1a8391056111f7442b3fed04c2a5251b
dev/hin_dev.tsv 16618 51807c402408a8da95fde02b9f9af35a39715ff0e31020f5fa95937962fa66a1
test/hin_test.tsv 16625 027a4a65f3674c2fff19e1c6d28081c78bedc9d7858284143fb188c487c4e9ef
train/hun_train.tsv 97797 e729f49b9b232848ee5bb98afeae2e236f1ec7d0e89d43cf930a9526ad1b9e1e
dev/hun_dev.tsv 12575 a77a59974f54d218e8c8cf2d38c5db5ee33fac4767e842d3cc0b9bad42cf7032
test/hun_test.tsv 12135 314ebe4289c3aad2161e6bf93a684219541365d59771c98fb6fa81192482c6ce
train/jpn_train.tsv 136351 5a8adf93f79799b89ba1af4805caa482383dbd62365cca18d5ef5dd993b0c3ac
dev/jpn_dev.tsv 17017 ae61d965b012ae24cbf05d5bb7bf2c2fc721b9428c57828082e9d089a5020d79
test/jpn_test.tsv 16798 78a5997238663d18267acbffa5a0fe8bcb245e7497b30c663e896a4b28e9a84f
train/lit_train.tsv 140597 0b2a516fd0832654ae8fba3037635a66cc3ad864e61139323bad009a2de4cb14
dev/lit_dev.tsv 17453 0dba9ff447458eb6a5e5275d44f33cb98218cb59c5f86984e1c9c86744eb334c
test/lit_test.tsv 17234 a3daf8074296edcf6895828234e459e31a3f7cb654dd5354ba272dec74ef6332
"""

SOURCES = listed("sigmorphon2020_g2p", _ADDRESS, _TABLE)


def parts(language: str) -> Parts:
    """Returns the parts of one language: 3,600 words for training, 450 for validation, 450 for test."""
    answer = {}
    for part, name in PARTS.items():
        source = SOURCES[f"{language}_{name}.tsv"]
        answer[part] = examples(group(rows(text(read(source), source.file), source.file), source.file))
    return answer


def rows(table: str, path: str, half: list[int] | None = None) -> Iterator[tuple[str, Phones]]:
    """Yields the word and the phones of each row, both in NFC.

    A row is a word, a tab, and phones separated by spaces.

    Args:
      table: the text.
      path: the file it comes from, used in messages.
      half: if given, rows with one empty column are left out, and their numbers are appended to this list.

    Raises:
      DataError: if a row does not have two columns, or one is empty and `half` is not given. The message names the path
        and the line.
    """
    for number, row in enumerate(unicodedata.normalize("NFC", table).split("\n"), start=1):
        if not row.strip():
            continue
        columns = [column.strip() for column in row.split("\t")]
        if len(columns) == 2 and not all(columns) and half is not None:
            half.append(number)
            continue
        if len(columns) != 2 or not all(columns):
            hint = SKIPPING if len(columns) == 2 else ""
            raise DataError(f"{path}, line {number}: expected a word, a tab and its phones, got {row!r}{hint}")
        yield columns[0], tuple(columns[1].split())
