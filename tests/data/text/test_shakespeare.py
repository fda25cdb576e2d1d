from attnlab.data.io.published import read
from attnlab.data.text import shakespeare


def test_the_parts_are_the_text_in_its_order_and_the_test_is_the_published_validation(published):
    published("tiny_shakespeare")
    parts = shakespeare.parts()
    assert "".join(parts.values()).encode() == read(shakespeare.INPUT)
    assert {part: len(text) for part, text in parts.items()} == {"train": 948_085, "valid": 55_769, "test": 111_540}
    assert len(set(parts["train"])) == 65
