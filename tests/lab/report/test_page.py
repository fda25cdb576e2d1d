"""The page of a study: what it says, that nothing breaks out of it, and how a browser takes it."""

import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from attnlab.lab.folder import FolderError, RunFolder
from attnlab.lab.report import report
from tests.lab.synthetic import write_run, write_study

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e]]>&amp;{}${7*7}</style></title>"


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text: str):
        super().__init__()
        self.source, self.tags, self.words = text, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def read(folder) -> Page:
    return Page(report(folder).read_text(encoding="utf-8"))


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path / "dates", steps=500)


def test_the_page_says_what_the_folders_say(study):
    page = read(study)
    question = "Does softmax attention read human-written dates better than linear attention?"
    assert page.text.count(question) == 1
    assert "softmax is better than linear." in page.text
    results = {name: RunFolder(study / name).read("result") or {} for name in ("softmax", "linear")}
    for name, result in results.items():
        found = result["metrics"]["exact_match"]
        low, high = (f"{100 * found[end]:.1f}" for end in ("low", "high"))
        mean = f"{100 * found['mean']:.1f}%"
        assert f"{name}: exact match {mean} (95% interval {low}–{high}%, 3 seeds)." in page.text
    for word in ("312,456", "1.62 GFLOP", "24.6 kB", "95.3 ms", "0 of 3", "attnlab run experiments/dates.py"):
        assert word in page.text
    assert results["softmax"]["fingerprint"] in page.text
    assert "model.width=64" in page.text
    assert len([tag for tag, attributes in page.tags if attributes.get("class") == "curve"]) == 2


def test_the_page_is_the_same_each_time(study):
    first = report(study).read_bytes()
    assert report(study).read_bytes() == first
    assert len(first) < 400_000


def test_a_study_imports_no_jax_and_reads_no_registry(study):
    program = (
        "import sys; from attnlab.lab.report import report; from attnlab.lab.table import results_table; "
        f"report({str(study)!r}); results_table({str(study)!r}); "
        "assert not {'jax', 'flax', 'matplotlib.pyplot', 'attnlab.mechanisms'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_is_fetched_and_nothing_runs(study):
    page = read(study)
    assert "http:" not in page.source
    assert "https:" not in page.source
    assert not re.findall(r"@import|url\((?!#)", page.source)
    for tag, attributes in page.tags:
        assert tag not in {"script", "iframe", "object", "embed", "form", "base"}
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in {"src", "href", "xlink:href", "srcset", "action", "data"}:
                assert value.startswith("#") or value == "data:,"
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy


def test_hostile_names_stay_text(tmp_path):
    names = ["<img src=x onerror=alert(3)>", '"><svg onload=alert(4)>', "'[red]x", "&lt;b&gt;"]
    for name in names:
        write_run(tmp_path / name, name, question=HOSTILE, groups=(HOSTILE,), steps=100)
    run = RunFolder(tmp_path / names[0])
    for file in ("experiment", "environment", "result"):
        found = run.read(file) or {}
        run.write(file, {**found, "fingerprint": HOSTILE, "command": HOSTILE, HOSTILE: HOSTILE})
    found = run.read("experiment") or {}
    run.write(
        "experiment",
        {**found, "experiment": {HOSTILE: HOSTILE, "train": [HOSTILE], "model": {"registry": []}}},
    )
    result = run.read("result") or {}
    result["metrics"][HOSTILE] = result["metrics"]["exact_match"]
    result["diverged"] = [{"seed": HOSTILE, "learning_rate": HOSTILE, "step": HOSTILE}, HOSTILE]
    run.write("result", result)
    run.write("maps", {"source": [HOSTILE, "\u0000"], "target": ["\ud800"], "layers": [[[[0.5, 0.5]]]]})
    plain = read(write_study(tmp_path.parent / "plain", steps=100))
    page = read(tmp_path)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags}
    allowed = {name for _, attributes in plain.tags for name in attributes}
    assert {name for _, attributes in page.tags for name in attributes} <= allowed
    for words in [*names, " ".join(HOSTILE.split())]:
        assert words in page.text


def test_a_half_finished_run_is_listed_and_never_averaged(tmp_path):
    write_study(tmp_path, {"softmax": {}, "linear": {"finished": False, "steps": 1000}}, groups=())
    page = read(tmp_path)
    assert "1 of 2 variants finished" in page.text
    assert page.text.count("unfinished, 250 of 1,000 steps") == 2
    assert "better" not in page.text.replace("read human-written dates better", "")
    curves = [attributes["aria-label"] for _, attributes in page.tags if attributes.get("class") == "curve"]
    assert curves
    assert not [label for label in curves if "linear" in label]


def test_nothing_finished(tmp_path):
    write_study(tmp_path, {"softmax": {"finished": False, "steps": 100}})
    assert "No run in this folder has finished" in read(tmp_path).text


def test_one_seed_has_no_interval(tmp_path):
    page = read(write_study(tmp_path, seeds=(3,), steps=100, groups=()))
    assert "no interval from one seed" in page.text
    assert "Nothing tells softmax from linear yet" in page.text
    assert "95% interval" not in page.text.split("The numbers")[0]


def test_diverged_seeds_are_counted_and_left_out(tmp_path):
    variants = {"softmax": {}, "linear": {"died": (1,)}, "delta": {"died": (0, 1, 2)}}
    page = read(write_study(tmp_path, variants, steps=400, groups=()))
    assert "2 seeds; 1 more diverged and is not in the mean" in page.text
    assert "2 pairs" in page.text
    assert "delta has no exact match: every seed diverged." in page.text
    assert "1 of 3" in page.text
    assert "3 of 3" in page.text
    assert "a dotted line that ends in a cross is a seed that diverged" in page.text
    titles = [attributes.get("title") or "" for _, attributes in page.tags]
    assert "seed 1 at 0.003, step 200" in titles


def test_numbers_that_are_not_finite_are_shown_as_failed(study):
    run = RunFolder(study / "linear")
    result = run.read("result") or {}
    result["metrics"]["exact_match"]["values"][0] = float("nan")
    run.write("result", result)
    page = read(study)
    assert "linear failed: exact match is not finite for 1 of 3 seeds. It is not averaged." in page.text
    assert "not finite in 1 of 3 seeds" in page.text


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("result.json", "{", "linear/result.json: not JSON"),
        ("result.json", '{"metrics": {}}', "linear/result.json: the field 'seeds' is missing"),
        ("experiment.json", "[]", "linear/experiment.json: a JSON object was expected"),
        ("metrics.jsonl", "x\n{}", "linear/metrics.jsonl, line 1: not JSON"),
        ("maps.json", '{"source": [], "target": [], "layers": [1]}', "linear/maps.json: layers"),
        ("maps.json", '{"source": ["a"], "target": [], "layers": [[[[1, 2]]]]}', "linear/maps.json: layers"),
    ],
)
def test_a_broken_file_gives_a_line_and_the_rest_stands(study, file, content, complaint):
    (study / "linear" / file).write_text(content)
    page = read(study)
    assert complaint in page.text
    assert str(study) not in page.text
    assert "softmax: exact match" in page.text


def test_a_metrics_line_cut_in_the_middle_is_no_trouble(study):
    with (study / "linear" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 510, "se')
    assert "Could not be read" not in read(study).text


def test_a_folder_without_runs_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FolderError, match=re.escape(str(folder))):
            report(folder)
    assert not list(tmp_path.iterdir())


def test_a_reader_of_the_screen_is_told_what_the_pictures_show(study):
    page = read(study)
    assert page.tags[0] == ("html", {"lang": "en"})
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(pictures) > 50
    assert all(picture.get("aria-label") or picture.get("aria-hidden") == "true" for picture in pictures)
    levels = [tag for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count("h1") == 1
    identities = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(identities) == len(set(identities))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Loads a page from a server of one's own: what was asked of it, the console's lines, the tree."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium on this machine")

    def load(content: bytes, width: int = 1200) -> tuple[list[str], list[str], str]:
        asked: list[str] = []

        class Server(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args):
                pass

        with HTTPServer(("127.0.0.1", 0), Server) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            found = _visit(program, tmp_path_factory.mktemp("profile"), server.server_port, width)
            server.shutdown()
        console = [line for line in found.stderr.splitlines() if "CONSOLE" in line]
        return asked, console, found.stdout

    return load


def _visit(program, profile, port, width):
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
        "--enable-logging=stderr", "--v=0", f"--window-size={width},2000", f"--user-data-dir={profile}",
        "--virtual-time-budget=2000", "--dump-dom", f"http://127.0.0.1:{port}/page",
    ]  # fmt: skip
    return subprocess.run([program, *options], capture_output=True, text=True, timeout=60, encoding="utf-8")


def test_a_browser_has_no_complaint_and_asks_for_nothing_else(browser, study):
    asked, console, shown = browser(report(study).read_bytes())
    assert "softmax" in shown
    assert console == []
    assert asked == ["/page"]


def test_the_browser_would_notice(browser, study):
    # The page's own policy stops the image and says so; without a policy the server would see it asked for.
    page = report(study).read_bytes().replace(b"</main>", b"<img src='/stray.png'></main>")
    asked, console, _ = browser(page)
    assert console
    assert asked == ["/page"]
    asked, _, _ = browser(re.sub(rb"<meta http-equiv[^>]*>", b"", page))
    assert "/stray.png" in asked
