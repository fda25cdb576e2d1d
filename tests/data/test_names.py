import pytest

from attnlab.data.names import check


def test_a_known_name_passes():
    check("task.language", "hun", ["hun", "jpn"])


def test_an_unknown_name_is_told_the_nearest_and_all():
    with pytest.raises(ValueError, match=r"task\.language='hum' is not known; nearest: 'hun'; known: hun, jpn"):
        check("task.language", "hum", ["hun", "jpn"])


def test_nothing_is_nearest_to_a_name_like_none():
    with pytest.raises(ValueError, match=r"'xyz' is not known; known: hun, jpn"):
        check("task.language", "xyz", ["hun", "jpn"])
