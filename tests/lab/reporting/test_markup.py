import pytest

from attnlab.lab.reporting.markup import Markup, join, name, tag


@pytest.mark.parametrize("hostile", ["<b>", '"', "'", "&lt;", "</script>", "]]>", "<!--"])
def test_text_and_values_are_escaped(hostile):
    written = tag("p", hostile, [hostile, tag("i", hostile)], title=hostile, aria_label=hostile)
    inside = written.removeprefix("<p").removesuffix("</p>")
    for bare in ("<b", "</s", "<!", "&lt;&", "'>"):
        assert bare not in inside
    assert written.count("&") == 5 * sum(letter in "<>&\"'" for letter in hostile)


def test_markup_is_not_escaped_twice():
    assert tag("p", tag("b", "<")) == "<p><b>&lt;</b></p>"
    assert join("a", None, [Markup("<br>"), 1]) == "a<br>1"
    assert name("<x>") == '<bdi class="name">&lt;x&gt;</bdi>'


def test_attributes():
    assert tag("p", class_="a", stroke_width=2, hidden=True, title=None, open=False) == (
        '<p class="a" stroke-width="2" hidden></p>'
    )
    assert tag("br") == "<br>"
