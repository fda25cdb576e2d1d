import pytest

from attnlab.lab.study.study import Study
from attnlab.lab.study.variation import Variation, chain, over, product, zipped


def test_a_product_combines_every_variation_with_every_other(toy):
    heads, width = over("model.heads", few=2, many=4), over("model.width", narrow=8, wide=16)
    both = product(heads, width)
    assert list(both.variants) == ["few-narrow", "few-wide", "many-narrow", "many-wide"]
    assert both.variants["few-wide"] == {"model.heads": 2, "model.width": 16}
    assert product(heads) == heads
    assert Study(toy.base, both).variants()["many-wide"].model.width == 16
    with pytest.raises(ValueError, match=r"^vary: model.heads is set by two of the variations$"):
        product(heads, width, over("model.heads", one=1))
    with pytest.raises(ValueError, match="at least one variant"):
        product(heads, Variation({}))
    with pytest.raises(ValueError, match=r"^vary: expected at least one variant, got none$"):
        product()


@pytest.mark.parametrize("combine", [product, zipped, chain, lambda a, b: a | b])
@pytest.mark.parametrize("other", [{"large": {"model.width": 64}}, "model.width", None])
def test_only_variations_are_combined(combine, other):
    with pytest.raises(ValueError, match=r"^vary: expected a Variation, for example over\(.*\), not "):
        combine(over("model.heads", few=2), other)


def test_unions_of_variations_keep_their_names():
    heads, width = over("model.heads", few=2), over("model.width", narrow=8)
    assert list((heads | width).variants) == ["few", "narrow"]
    with pytest.raises(ValueError, match=r"^vary: the name 'few' is given twice$"):
        heads | over("model.width", few=8)


def test_zipped_variations_are_paired():
    width, heads = over("model.width", small=8, large=16), over("model.heads", small=2, large=4)
    assert zipped(width, heads).variants == {
        "small": {"model.width": 8, "model.heads": 2},
        "large": {"model.width": 16, "model.heads": 4},
    }
    assert list(zipped(width, over("model.tied", yes=True, no=False)).variants) == ["small-yes", "large-no"]
    assert zipped(width) == width
    with pytest.raises(ValueError, match=r"^vary: 2 variants cannot be zipped with 1$"):
        zipped(width, over("model.heads", few=2))
    with pytest.raises(ValueError, match=r"^vary: model.width is set by two of the variations$"):
        zipped(width, over("model.width", a=1, b=2))
    with pytest.raises(ValueError, match="'small' would be zipped with 'large'; give the names in the same order"):
        zipped(width, over("model.heads", large=4, small=2))
    with pytest.raises(ValueError, match="at least one variant"):
        zipped()


def test_variations_are_chained():
    few, narrow, tied = over("model.heads", few=2), over("model.width", narrow=8), over("model.tied", tied=True)
    assert chain(few, narrow, tied) == few | narrow | tied
    with pytest.raises(ValueError, match=r"^vary: the name 'few' is given twice$"):
        chain(few, narrow, few)
    with pytest.raises(ValueError, match="at least one variant"):
        chain()


def test_names_that_would_be_one_folder_are_refused():
    # The name "a-b-c" occurs twice. In a dict, the second would replace the first.
    with pytest.raises(ValueError, match=r"^vary: the name 'a-b-c' is given twice$"):
        product(over("model.heads", **{"a": 2, "a-b": 4}), over("model.width", **{"b-c": 8, "c": 16}))
    with pytest.raises(
        ValueError, match=r"^vary: the names 'relu' and 'ReLU' would be the same folder on some systems$"
    ):
        over("model.norm", relu="layer", ReLU="rms")
    with pytest.raises(ValueError, match="would be the same folder"):
        over("model.norm", **{"é": "layer", "e\u0301": "rms"})


@pytest.mark.parametrize(
    "name", ["report.html", "table.csv", "Answer.PNG", "learning.png", "study.json", "seconds.json"]
)
def test_names_of_a_study_s_own_files_are_refused(name):
    with pytest.raises(ValueError, match=r"must not end in one of \.json, \.html, \.csv, \.png$"):
        over("model.width", **{"first": 8, name: 16})
