import pytest

from attnlab.data.io.published import Source
from attnlab.data.io.sources import SOURCES, data


def test_sources_are_whole_and_distinct():
    listed = [source for sources in SOURCES.values() for source in sources]
    assert len(listed) == 1 + 1 + 12 + 1 + 4 + 1 + 8 + 30 + 5 + 1
    assert len({source.sha256 for source in listed}) == len({source.url for source in listed}) == len(listed)
    for name, sources in SOURCES.items():
        for source in sources:
            assert source.set == name
            assert source.url.startswith("https://")
            assert len(source.sha256) == 64
            if isinstance(source, Source):
                assert source.url.endswith("/" + source.file)
                assert source.size > 0


def test_a_set_without_download_explains_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    ((_, _, status, path),) = data(["fsdd"])
    assert path is None
    assert (
        "it is not served as one file, get it with git clone https://github.com/Jakobovski/free-spoken-digit" in status
    )


def test_an_unknown_set_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="'cmu' is not known; nearest: 'cmudict'"):
        data(["cmu"])


def test_a_single_name_is_no_list_of_names():
    with pytest.raises(TypeError, match=r"^names must be an iterable of names, got 'cora'; pass \['cora'\]$"):
        data("cora")


def test_an_unavailable_file_gives_the_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    ((name, file, status, path),) = data(["cmudict"])
    assert (name, file, path) == ("cmudict", "cmudict.dict", None)
    assert "is missing" in status


@pytest.mark.parametrize("name", SOURCES)
def test_the_published_files_are_verified(published, name):
    published(name)
    found = list(data([name]))
    assert len(found) == len(SOURCES[name])
    assert {status for _, _, status, _ in found} == {"verified"}
