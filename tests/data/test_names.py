import pytest

from attnlab.data.names import PARTS, check, check_part


def test_a_known_name_passes():
    check("task.language", "hun", ["hun", "jpn"])


def test_an_unknown_name_lists_the_nearest_and_all():
    with pytest.raises(ValueError, match=r"task\.language='hum' is not known; nearest: 'hun'; known: hun, jpn"):
        check("task.language", "hum", ["hun", "jpn"])


def test_a_dissimilar_name_has_no_nearest():
    with pytest.raises(ValueError, match=r"'xyz' is not known; known: hun, jpn"):
        check("task.language", "xyz", ["hun", "jpn"])


def test_only_valid_and_test_are_evaluated_with_a_positive_limit():
    for part in PARTS[1:]:
        for limit in (None, 1, 9):
            check_part(part, limit)
    for part, limit in (("train", None), ("dev", 3), ("test", 0), ("valid", -1)):
        with pytest.raises(
            ValueError, match=rf"part={part!r} must be 'valid' or 'test', and limit={limit} must be None or at least 1"
        ):
            check_part(part, limit)
