"""The page of a study: what it shows, and that names cannot break its markup."""

import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256

import pytest

from attnlab.lab.reporting import report
from attnlab.lab.reporting.map_viewer import SCRIPT
from attnlab.lab.reporting.page import page
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from tests.lab.reporting.parsed_page import HOSTILE, Page
from tests.lab.synthetic import retell, rewrite, write_run, write_study


def read(folder) -> Page:
    return Page(page(outcomes(folder), folder.name))


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path / "dates", steps=500)


def test_the_page_agrees_with_the_folders(study):
    shown = read(study)
    question = "Does softmax attention read human-written dates better than linear attention?"
    assert shown.text.count(question) == 1
    assert "linear is worse than softmax." in shown.text
    results = {name: RunFolder(study / name).read("result") or {} for name in ("softmax", "linear")}
    for name, result in results.items():
        found = result["metrics"]["exact_match"]
        low, high = (f"{100 * found[end]:.1f}" for end in ("low", "high"))
        mean = f"{100 * found['mean']:.1f}%"
        assert f"{name}: exact match {mean} (95% interval {low}–{high}%, 3 seeds)." in shown.text
    for word in (
        "312,456",
        "1.62 GFLOP",
        "24.6 kB",
        "95.3 ms",
        "48.5 MB",
        "0 of 3",
        "attnlab run experiments/dates.py",
    ):
        assert word in shown.text
    assert results["softmax"]["fingerprint"] in shown.text
    assert "model.width=64" in shown.text
    assert len([tag for tag, attributes in shown.tags if attributes.get("class") == "curve"]) == 2
    assert len([tag for tag, attributes in shown.tags if attributes.get("class") == "scatter"]) == 3


def test_tables_and_figures_are_written_next_to_the_page(study):
    shown = Page(report(study).read_text(encoding="utf-8"))
    links = [attributes["href"] for tag, attributes in shown.tags if tag == "a"]
    assert links == ["table.csv", "answer.png", "learning.png"]
    assert all((study / link).stat().st_size > 100 for link in links)
    assert sorted(path.name for path in study.iterdir() if path.is_file()) == sorted([*links, "report.html"])
    # Outdated figures are removed.
    for name in ("softmax", "linear"):
        RunFolder(study / name).file("result").unlink()
    shown = Page(report(study).read_text(encoding="utf-8"))
    assert [attributes["href"] for tag, attributes in shown.tags if tag == "a"] == ["table.csv"]
    assert not list(study.glob("*.png"))


def test_the_page_is_deterministic(study):
    first = page(outcomes(study), "dates")
    assert page(outcomes(study), "dates") == first
    assert len(first) < 400_000


def test_a_study_imports_no_jax_and_reads_no_registry(study):
    program = (
        "import sys; from attnlab.lab.reporting import report; from attnlab.lab.results.table import results_table; "
        f"report({str(study)!r}); results_table({str(study)!r}); "
        "assert not {'jax', 'flax', 'matplotlib.pyplot', 'attnlab.mechanisms'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_is_fetched_and_only_sliders_have_scripts(study):
    shown = read(study)
    assert "http:" not in shown.source
    assert "https:" not in shown.source
    assert not re.findall(r"@import|url\((?!#)", shown.source)
    for tag, attributes in shown.tags:
        assert tag not in {"iframe", "object", "embed", "form", "base"}
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in {"src", "href", "xlink:href", "srcset", "action", "data"}:
                assert value.startswith("#") or value in {"data:,", "table.csv", "answer.png", "learning.png"}
    assert [attributes for tag, attributes in shown.tags if tag == "script"] == [{}]
    policy = next(a["content"] for tag, a in shown.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    (allowed,) = re.findall("script-src ([^;]*)", policy)
    assert allowed == f"'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"
    assert shown.source.count(f"<script>{SCRIPT}</script>") == 1


def test_markup_in_names_is_escaped(tmp_path):
    names = ["<img src=x onerror=alert(3)>", '"><svg onload=alert(4)>', "'[red]x", "&lt;b&gt;"]
    for name in names:
        write_run(tmp_path / name, name, question=HOSTILE, groups=(HOSTILE,), steps=100)
    run = RunFolder(tmp_path / names[0])
    more = {"fingerprint": HOSTILE, "command": HOSTILE, HOSTILE: HOSTILE}
    odd = {HOSTILE: HOSTILE, "train": [HOSTILE], "model": {"registry": []}}
    rewrite(run, {**(run.read("experiment") or {}), **more, "experiment": odd})
    run.write("environment", {**(run.read("environment") or {}), **more})
    result = {**(run.read("result") or {}), **more}
    result["metrics"][HOSTILE] = result["metrics"]["exact_match"]
    result["diverged"] = [{"seed": HOSTILE, "learning_rate": HOSTILE, "step": HOSTILE}, HOSTILE]
    run.write("result", result)
    example = {"source": [HOSTILE, "\u0000"], "target": ["\ud800"], "layers": [[[[0.5, 0.5]]]]}
    run.write("maps", {"examples": [example, example]})
    plain = read(write_study(tmp_path.parent / "plain", steps=100))
    shown = read(tmp_path)
    assert {tag for tag, _ in shown.tags} <= {tag for tag, _ in plain.tags}
    allowed = {name for _, attributes in plain.tags for name in attributes}
    assert {name for _, attributes in shown.tags for name in attributes} <= allowed
    for words in [*names, " ".join(HOSTILE.split())]:
        assert words in shown.text


def test_an_unfinished_run_is_listed_and_never_averaged(tmp_path):
    write_study(tmp_path, {"softmax": {}, "linear": {"finished": False, "steps": 1000}}, groups=())
    shown = read(tmp_path)
    assert "1 of 2 variants finished" in shown.text
    assert shown.text.count("unfinished, 250 of 1,000 steps") == 2
    assert "better" not in shown.text.replace("read human-written dates better", "")
    curves = [attributes["aria-label"] for _, attributes in shown.tags if attributes.get("class") == "curve"]
    assert curves
    assert not [label for label in curves if "linear" in label]


def test_no_finished_runs(tmp_path):
    write_study(tmp_path, {"softmax": {"finished": False, "steps": 100}})
    shown = read(tmp_path)
    assert "No run in this folder has finished" in shown.text
    assert "script" not in [tag for tag, _ in shown.tags]


def test_one_seed_has_no_interval(tmp_path):
    shown = read(write_study(tmp_path, seeds=(3,), steps=100, groups=()))
    assert "no interval from one seed" in shown.text
    assert "There is no verdict on linear" in shown.text
    assert "95% interval" not in shown.text.split("The numbers")[0]


def test_diverged_seeds_are_counted_and_left_out(tmp_path):
    variants = {"softmax": {}, "linear": {"diverged": (1,)}, "delta": {"diverged": (0, 1, 2)}}
    shown = read(write_study(tmp_path, variants, steps=400, groups=()))
    assert "2 seeds; 1 more diverged and is not in the mean" in shown.text
    assert "2 pairs" in shown.text
    assert "Left out for lack of a partner: seed 1 (diverged)." in shown.text
    assert "delta has no exact match: every seed diverged." in shown.text
    assert "1 of 3" in shown.text
    assert "3 of 3" in shown.text
    assert "A dotted line that ends in a cross is a seed that diverged" in shown.text
    titles = [attributes.get("title") or "" for _, attributes in shown.tags]
    assert "seed 1 at 0.003, step 200" in titles


def test_numbers_that_are_not_finite_are_shown_as_failed(study):
    run = RunFolder(study / "linear")
    result = run.read("result") or {}
    result["metrics"]["exact_match"]["values"][0] = float("nan")
    run.write("result", result)
    shown = read(study)
    assert "linear failed: exact match is not finite for 1 of 3 seeds. It is not averaged." in shown.text
    assert "not finite in 1 of 3 seeds" in shown.text


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("result.json", "{", "linear/result.json: not JSON"),
        ("result.json", '{"metrics": {}}', "linear/result.json: the field 'seeds' is missing"),
        ("maps.json", '{"examples": []}', "linear/maps.json: the checksum sha256 is missing"),
        ("experiment.json", "[]", "linear/experiment.json: expected a JSON object"),
        ("metrics.jsonl", "x\n{}", "linear/metrics.jsonl, line 1: not JSON"),
        ("maps.json", {"source": [], "target": [], "layers": [1]}, "linear/maps.json: layers"),
        ("maps.json", {"examples": 3}, "linear/maps.json: examples must be a list"),
        ("maps.json", {"source": ["a"], "target": [], "layers": [[[[1, 2]]]]}, "linear/maps.json: layers"),
    ],
)
def test_a_broken_file_is_reported_and_the_rest_is_shown(study, file, content, complaint):
    if isinstance(content, str):
        (study / "linear" / file).write_text(content)
    else:
        RunFolder(study / "linear").write("maps", content)
    shown = read(study)
    assert complaint in shown.text
    assert str(study) not in shown.text
    assert "softmax: exact match" in shown.text


def test_a_truncated_metrics_line_is_ignored(study):
    with (study / "linear" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 510, "se')
    assert "could not be read" not in read(study).text


def test_a_run_with_a_partly_recorded_step_is_unfinished(study):
    run = RunFolder(study / "linear")
    run.file("result").unlink()
    rows = run.metrics()
    lanes = sum(row["step"] == rows[0]["step"] for row in rows)
    assert lanes > 1
    run.append_metrics([rows[-1] | {"step": rows[-1]["step"] + 10}])
    with run.file("metrics").open("a") as file:
        file.write('{"step": 510, "se')
    found = {outcome.name: outcome for outcome in outcomes(study)}["linear"]
    assert found.troubles == ()
    assert found.last_step() == rows[-1]["step"]


def test_a_folder_without_runs_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FolderError, match=re.escape(str(folder))):
            report(folder)
    assert not list(tmp_path.iterdir())


def test_figures_have_descriptions_for_screen_readers(study):
    shown = read(study)
    assert shown.tags[0] == ("html", {"lang": "en"})
    pictures = [attributes for tag, attributes in shown.tags if tag == "svg"]
    assert len(pictures) > 50
    # SVG elements with an `overflow` attribute are parts of a picture.
    whole = [picture for picture in pictures if "overflow" not in picture]
    assert all(picture.get("aria-label") or picture.get("aria-hidden") == "true" for picture in whole)
    levels = [tag for tag, _ in shown.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count("h1") == 1
    identities = [attributes["id"] for _, attributes in shown.tags if attributes.get("id")]
    assert len(identities) == len(set(identities))


def test_unpaired_seeds_are_reported_and_not_averaged(tmp_path):
    shown = read(write_study(tmp_path, {"softmax": {}, "linear": {"seeds": (7, 8, 9)}}, steps=100, groups=()))
    assert "There is no verdict on linear." in shown.text
    assert "got 7, 8, 9 and 0, 1, 2." in shown.text
    assert "verdict" not in shown.text.split("The numbers")[1].split("Learning")[0]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Returns the page of a study with two primary metrics: a rate, and a metric where lower is better."""
    home = tmp_path_factory.mktemp("studies") / "mixed"
    means = {"dates-a": 0.9, "text-a": 0.82, "dates-b": 0.8, "text-b": 0.7}
    write_study(home, {name: {"mean": mean} for name, mean in means.items()}, steps=500, groups=("de", "en"))
    for name in ("text-a", "text-b"):
        retell(RunFolder(home / name), "bits_per_character", 2.5)
    return read(home)


def test_two_metrics_have_separate_axes(mixed):
    drawn = {kind: [a["aria-label"] for _, a in mixed.tags if a.get("class") == kind] for kind in ("curve", "scatter")}
    bits = "bits per character"
    assert [label.split(" against ")[0] for label in drawn["scatter"]] == ["exact match"] * 3 + [bits] * 3
    assert drawn["curve"] == [
        "training loss (primary metric: exact match) by step for dates-a, dates-b",
        "exact match on validation by step for dates-a, dates-b",
        "training loss (primary metric: bits per character) by step for text-b, text-a",
        "bits per character on validation by step for text-b, text-a",
    ]
    labels = [a["aria-label"] for _, a in mixed.tags if a.get("aria-label")]
    assert not [label for label in labels if "dates-" in label and "text-" in label]
    answer = mixed.source.split("The numbers")[0]
    axes = [re.findall("<text[^>]*>([^<]*)<", figure) for figure in re.findall("<figure.*?</figure>", answer, re.S)]
    assert [{word.endswith("%") for word in axis} for axis in axes] == [{True}, {False}]
    assert not [share for share in re.findall(r"([\d.]+)%", mixed.text) if float(share) > 100]
    # Two figures of the same kind have different ids, so neither refers to elements of the other.
    identities = [attributes["id"] for _, attributes in mixed.tags if attributes.get("id")]
    assert len(identities) == len(set(identities))


def test_two_metrics_have_separate_columns(mixed):
    sections = mixed.source.split("<h2>")
    numbers, groups = (next(part for part in sections if part.startswith(h)) for h in ("The numbers", "By group"))
    for part in (numbers, groups):
        tables = re.findall("<table.*?</table>", part, re.S)
        assert [["dates-" in table, "text-" in table] for table in tables] == [[True, False], [False, True]]
    first, second = re.findall("<table.*?</table>", numbers, re.S)
    assert "bits per character" not in first
    assert "exact match" not in second
    # The groups of each primary metric are drawn outside of <details>, where they are visible.
    drawn = re.sub("<details.*?</details>", "", groups, flags=re.S)
    assert re.findall("<h3>(.*?) by group", drawn) == ["exact match", "bits per character"]


def test_seeds_with_equal_values_claim_no_certainty(tmp_path):
    shown = read(write_study(tmp_path / "still", {"softmax": {"mean": 1.0, "spread": 0.0}}, steps=500, groups=()))
    assert "softmax: exact match 100.0% (no interval: 3 seeds show no spread)." in shown.text
    assert "the line is its 95% interval (no line if the seeds show no spread)" in shown.text
    assert "100–100%" not in shown.source
