"""How a browser shows the page of a study."""

import re

import pytest

from attnlab.lab.reporting import report
from attnlab.lab.runs.run_folder import RunFolder
from tests.lab.synthetic import write_study


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Returns the page of a study, for tests that do not change it."""
    return report(write_study(tmp_path_factory.mktemp("studies") / "dates", steps=500))


# The maps are unpacked asynchronously and then drawn.
READY = """new Promise(done => {
  const wait = () => document.querySelector(".lens:not(.live)") ? setTimeout(wait, 20) : done();
  wait();
})"""


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_a_browser_reports_no_errors_requests_or_horizontal_scrolling(browser, finished, width, dark):
    browser.open(finished, width, dark)
    assert "softmax" in browser.run("document.title + document.body.innerText")
    browser.run(READY)
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.said == []
    assert browser.asked == [finished.as_uri()]


def test_the_browser_test_detects_errors(browser, finished, tmp_path):
    # The policy of the page blocks foreign content and logs it. Without it, the image is requested and the script runs.
    file = tmp_path / "report.html"
    stray = finished.read_bytes().replace(
        b"</main>", b"<img src='stray.png'><script>console.log('ran')</script></main>"
    )
    file.write_bytes(stray)
    browser.open(file)
    assert len(browser.said) == 2
    assert not any(line == "ran" for line in browser.said)
    file.write_bytes(re.sub(rb'<meta http-equiv="Content[^>]*>', b"", stray))
    browser.open(file)
    assert "ran" in browser.said
    assert any(address.endswith("stray.png") for address in browser.asked)


def test_sliders_change_the_map(browser, finished):
    browser.open(finished)
    cells = "[...document.querySelectorAll('.lens .example:not([hidden]) .cells')][0].outerHTML"
    browser.run(READY)
    last, seen = browser.run(cells), set()
    assert "<rect" in last
    seen.add(last)
    for slider, key, told in (
        ("layer", "ArrowLeft", "1 of 2"),
        ("head", "ArrowRight", "1 of 4"),
        ("head", "End", "4 of 4"),
        ("example", "ArrowRight", "2 of 3"),
    ):
        browser.run(f"document.querySelector('.lens input.{slider}').focus()")
        browser.press(key)
        assert browser.run("document.activeElement.nextElementSibling.value") == told
        seen.add(browser.run(cells))
    assert len(seen) == 5
    # The drawn weight equals that in the file: layer 1, head 4 of the second example.
    example = (RunFolder(finished.parent / "softmax").read("maps") or {})["examples"][1]
    weight = example["layers"][0][3][0][-1]
    words = browser.run("document.querySelector('.lens .example:not([hidden]) .cells').textContent")
    assert f"{example['target'][0]} ← {example['source'][-1]}  {weight:.3f}" in words
    assert browser.said == []


def test_printed_pages_show_the_mean_of_the_last_layer(browser, finished):
    browser.open(finished)
    browser.run(READY)
    style = "getComputedStyle(document.querySelector('.lens {}')).display"
    assert browser.run(style.format(".still")) == "none"
    browser.run("document.querySelector('.lens input.example').focus()")
    browser.press("End")
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run(style.format(".sliders+.example .still")) != "none"
    assert browser.run(style.format(".cells")) == "none"
    visible = "[...document.querySelectorAll('.lens')].map(l => [...l.children].filter(c => c.offsetHeight).length)"
    assert browser.run(visible) == [1, 1]
    dot = "getComputedStyle(document.querySelector('.verdicts li'), '::before').printColorAdjust"
    assert browser.run(dot) == "exact"
    assert browser.paper().startswith(b"%PDF")


def test_without_scripts_the_page_shows_the_first_maps(browser, finished):
    browser.open(finished, scripts=False)
    # The page runs no script, so the protocol queries its elements instead.
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    found = browser.call("DOM.querySelectorAll", nodeId=root, selector=".lens .still path")["nodeIds"]
    assert browser.call("DOM.getBoxModel", nodeId=found[0])["model"]["width"] > 10
    (sliders, *_) = browser.call("DOM.querySelectorAll", nodeId=root, selector=".sliders")["nodeIds"]
    with pytest.raises(RuntimeError, match="box model"):
        browser.call("DOM.getBoxModel", nodeId=sliders)
