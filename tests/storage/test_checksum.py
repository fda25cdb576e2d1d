"""Checksums detect every flipped bit, and lost, moved or foreign rows."""

import json

import pytest

from attnlab.storage.checksum import checksum, find_damage, find_row_damage, row_with_checksum, with_checksum

OBJECTS = [b"{}", b'{"a": 1}', b'{\n "a": "\xc3\xa9",\n "b": [1e-3, null]\n}']


@pytest.mark.parametrize("content", OBJECTS)
def test_an_object_with_checksum_is_json_with_the_digest_first(content):
    found = with_checksum(content)
    assert find_damage(found) is None
    name, *_ = value = json.loads(found)
    assert name == "sha256"
    assert value.pop("sha256").encode() == checksum(found)
    assert value == json.loads(content)


@pytest.mark.parametrize("content", OBJECTS)
def test_every_flipped_bit_of_an_object_is_found(content):
    found = with_checksum(content, b"run")
    assert find_damage(found, b"run") is None
    for at in range(len(found)):
        for bit in range(8):
            assert find_damage(flipped(found, at, bit), b"run"), (at, bit)


def test_a_truncated_object_and_another_owner_are_detected():
    found = with_checksum(OBJECTS[1], b"one")
    assert all(find_damage(found[:at], b"one") for at in range(len(found)))
    assert "belongs to another run" in (find_damage(found, b"other") or "")
    assert find_damage(found)


def test_a_missing_checksum_is_reported():
    assert "the checksum sha256 is missing" in (find_damage(b'{"a": 1}') or "")
    assert "the checksum crc32 is missing" in (find_row_damage(b'{"a": 1}') or "")
    assert checksum(b'{"a": 1}') == b""


def test_every_flipped_bit_of_a_row_is_found():
    first = row_with_checksum(b'{"step": 1, "note": "\xc3\xa9"}', b"run")
    second = row_with_checksum(b'{"step": 2}', first)
    assert json.loads(second)["step"] == 2
    assert find_row_damage(first, b"run") is None
    assert find_row_damage(second, first) is None
    for at in range(len(second)):
        for bit in range(8):
            assert find_row_damage(flipped(second, at, bit), first), (at, bit)


def test_lost_repeated_and_reordered_rows_are_detected():
    rows = [b"run"]
    for step in range(4):
        rows.append(row_with_checksum(b'{"step": %d}' % step, rows[-1]))
    for n, row in enumerate(rows[1:], 1):
        for m, before in enumerate(rows):
            assert (find_row_damage(row, before) is None) == (m == n - 1)


def flipped(content, at, bit):
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]
