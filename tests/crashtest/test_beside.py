"""Records of several pipelines on one page: nothing is lost, each keeps its order, and what is no record is refused."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command import labkit, refusal

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.crashtest.blackbox.beside import Beside, Record, Seen, read_record


def seen(text: str) -> Seen:
    """As `write part-0 yes`: what was done, to which file, and whether it is synced (`-`: no question)."""
    kind, path, synced = text.split()
    last = {"yes": True, "no": False, "-": None}[synced]
    lane = "decision" if path == "mark" else "data"
    return Seen(lane, f"{kind} {path} #1", kind, path, "", last)


def record(*texts: str, command: str = "job") -> Record:
    return Record(command, tuple(map(seen, texts)), ())


def folded(*texts: str) -> list[str]:
    return [f"{each.said} {each.synced}" for each in record(*texts).folded()]


def test_writes_of_a_file_are_one_until_something_else_happens_to_it() -> None:
    assert folded("create a no", "write a yes", "write mark yes", "write a yes", "sync a -") == [
        "create a False",
        "write a True",
        "write mark True",
        "sync a None",
    ]
    assert folded("write a yes", "sync a -", "write a no") == ["write a True", "sync a None", "write a False"]


def test_writes_of_which_one_is_not_synced_are_not_synced() -> None:
    assert folded("write a yes", "write a no", "write a yes") == ["write a False"]


def test_a_file_that_takes_the_name_of_another_is_written_anew() -> None:
    moved = Seen("data", "rename a #1", "rename", "b", "a", None)
    effects = (seen("write a yes"), moved, seen("write a no"))
    assert len(Record("job", effects, ()).folded()) == 3


def test_each_pipeline_keeps_its_order_and_its_lanes() -> None:
    two = Beside([record("write a yes", "write mark no"), record("write mark yes")])
    lines = two.text().splitlines()
    assert "data     1 effect; 1 of 1 synced" in lines[2]
    assert lines[2].endswith("data     0 effects")
    assert lines[3].count("decision 1 effect;") == 2
    assert lines[5].startswith("data     write a [synced]")
    assert lines[5].endswith("decision write mark [synced]")
    assert lines[6].startswith("decision write mark [not synced]")
    assert [each["effects"] for each in two.to_json()["pipelines"]] == [
        [
            {"lane": "data", "said": "write a", "synced": True},
            {"lane": "decision", "said": "write mark", "synced": False},
        ],
        [{"lane": "decision", "said": "write mark", "synced": True}],
    ]


@pytest.mark.parametrize("lane", ["manifests-of-it", "m" * 90])
def test_a_long_name_of_a_lane_does_not_run_into_the_text(lane: str) -> None:
    own = Seen(lane, "write m", "write", "m", "", None)
    two = Beside([Record("job", (own, seen("write a yes")), ())] * 2)
    lines = two.text().splitlines()
    assert [line.count(f"{lane} 1 effect") for line in lines].count(2) == 1
    assert [line.count(f"{lane} write m") for line in lines].count(2) == 1
    assert len({line.index("  |  ") for line in lines if line}) == 1


def test_the_picture_has_a_diagram_for_each_with_the_same_lanes() -> None:
    pipelines = [record("write a yes", "write mark no", command="spark"), record("write mark yes", command="flink")]
    tree = ET.fromstring(Beside(pipelines).picture())
    space = "{http://www.w3.org/2000/svg}"
    drawings = tree.findall(f"{space}g")
    assert len(drawings) == 2
    for drawing in drawings:
        told = [each.text for each in drawing.iter(f"{space}text")]
        assert told[:2] == ["data", "decision"]
    said = [each.text for each in tree.findall(f"{space}text")]
    assert said.count("spark") == said.count("flink") == 2
    assert "2. decision: write mark [not synced]" in said


@pytest.mark.usefixtures("watched_calls")
def test_two_commands_that_were_run(tmp_path: Path) -> None:
    for name, command in (
        ("spark", "echo 0 > offsets/0; echo row > part-0; echo ok > commits/0"),
        ("flink", "echo row > .p.inprogress; sync .p.inprogress; mv .p.inprogress part-0"),
    ):
        folder = tmp_path / name
        for each in ("offsets", "commits"):
            (folder / each).mkdir(parents=True)
        assert labkit("effects", "--command", command, "--out", tmp_path / f"{name}.out", cwd=folder)[0] == 0
    both = ["--beside", "spark.out", "--beside", "flink.out/effects.json"]
    code, out, _ = labkit("effects", *both, "--json", "--out", "both", cwd=tmp_path)
    assert code == 0
    told = json.loads(out)
    assert told == json.loads((tmp_path / "both" / "beside.json").read_text())
    spark, flink = (
        [f"{each['lane']} {each['said']}" for each in pipeline["effects"]] for pipeline in told["pipelines"]
    )
    assert [each for each in spark if "create" in each] == [
        "plan create offsets/<n>",
        "data create part-0",
        "decision create commits/<n>",
    ]
    assert flink == [
        "data create .p.inprogress",
        "data write .p.inprogress",
        "data sync .p.inprogress",
        "visible rename part-0",
        "other exit",
    ]
    assert {each.name for each in (tmp_path / "both").iterdir()} == {*("beside.txt", "beside.json", "beside.svg")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--beside", "a"], "name two or more"),
        (["--beside", "a", "--beside", "b"], "--beside b: there is no such record"),
        (["--beside", "a", "--beside", "c"], "--beside c: this file is not a record"),
        (["--beside", "a", "--command", "true"], "leave --command, --watch and --lane out"),
        (["--beside", "a", "--beside", "a", "--out", "a"], "already exists"),
        ([], "Missing option '--command'"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "effects.json").write_text('{"command": "x", "effects": [], "notes": []}')
    (tmp_path / "c").write_text('{"command": "x"}')
    assert said in refusal("effects", *words, cwd=tmp_path)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that name two records without effects, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).write_text('{"command": "x", "effects": [], "notes": []}')
    return ["effects", "--beside", "a", "--beside", "b"]


def test_records_without_effects_are_shown(empty: list[str]) -> None:
    assert labkit(*empty, "--out", "both")[0] == 0
    assert ET.parse("both/beside.svg").getroot().tag.endswith("svg")


def test_what_cannot_be_drawn_leaves_no_folder(empty: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Beside) -> str:
        raise ValueError("no picture")

    monkeypatch.setattr(Beside, "picture", fails)
    assert labkit(*empty, "--out", "both")[0] == 70
    assert not Path("both").exists()


@pytest.mark.parametrize("place", ["/proc/x", "x" * 300, "a/below"])
def test_a_place_that_can_hold_no_folder_gets_a_sentence(empty: list[str], place: str) -> None:
    for words in (empty, ["effects", "--command", "true"]):
        said = refusal(*words, "--out", place)
        assert place in said
        assert "labkit itself failed" not in said


def test_a_run_that_is_refused_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: str, __: object, log: Path, **___: object) -> None:
        log.write_text("begun")
        raise ServiceUnavailable("system calls cannot be watched here.")

    monkeypatch.setattr("labkit.crashtest.blackbox.xray.xray", refuses)
    assert labkit("effects", "--command", "true", "--out", tmp_path / "kept")[0] == 69
    assert not (tmp_path / "kept").exists()


def test_a_record_is_found_by_its_folder_or_its_file(tmp_path: Path) -> None:
    file = tmp_path / "effects.json"
    file.write_text('{"command": "x", "effects": [], "notes": ["n"]}')
    assert read_record(tmp_path) == read_record(file) == Record("x", (), ("n",))
    with pytest.raises(InvalidInput, match="no such record"):
        read_record(tmp_path / "nothing")
