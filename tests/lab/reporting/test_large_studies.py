"""The page of a study with many variants shows details of the first variants only, with a note."""

import re

from attnlab.lab.reporting import attention_section, groups
from attnlab.lab.reporting.page import report
from tests.lab.synthetic import write_study


def test_details_are_those_of_the_first_variants(tmp_path, monkeypatch):
    write_study(tmp_path / "s", {"a": {}, "b": {}, "c": {}}, steps=40, groups=("de", "fr"), examples=1)
    whole = report(tmp_path / "s").read_text()
    for module in (attention_section, groups):
        monkeypatch.setattr(module, "DETAILED", 2)
    short = report(tmp_path / "s").read_text()
    maps = lambda page: re.findall(r'<figure class="map-figure"><figcaption>(?:<[^>]*>)*([^<]*)', page)
    assert sorted(maps(whole)) == ["a", "b", "c"]
    assert maps(short) == maps(whole)[:2]
    words = "The first 2 of 3 variants; "
    assert (whole.count(words), short.count(words)) == (0, 2)
    assert short.count("attnlab inspect RUN shows the maps of any run") == 1
    # In both cases, the table of all metrics contains every variant.
    assert all(f">{name}<" in short for name in "abc")
