"""Where a pipeline stands in the table of orders, told from a record: as far as a record can tell, and no further."""

import json
import shutil
from pathlib import Path

import pytest
from command import labkit, refusal

from labkit.core.errors import InvalidInput
from labkit.crashtest.blackbox.standing import read_names, readings, standing, user_row
from labkit.crashtest.blackbox.writes import attribute_rows, engine_rows, engines
from labkit.sim.writes import Design, parse_order
from labkit.teach.engine_pipelines import RECORDS

SAMPLES = ("write store/all.txt=visible", "write store/done=marker", "create *=nothing")
STEPS = ["write store/all.txt #{}", "write store/done #{}"]
NAMES = [
    "create store/done #1",
    "create store/all.txt #1",
    *(kind.format(number) for number in (1, 2, 3) for kind in STEPS),
    "exit",
]


def record(folder: Path, names: list[str] = NAMES) -> Path:
    """As `labkit effects --out` keeps it, as far as it is read."""
    effects = [{"name": name, "lane": "other"} for name in names]
    folder.mkdir()
    (folder / "effects.json").write_text(json.dumps({"effects": effects}))
    return folder


def kept(name: str) -> list[str]:
    effects: list[str] = json.loads((RECORDS / f"{name}.json").read_text())["effects"]
    return effects


def test_rows_of_a_person_give_the_order_and_every_way_to_read_it() -> None:
    found = standing(NAMES, [user_row(each) for each in SAMPLES])
    assert str(found.orders) == "visible > marker"
    said = {each.chosen: each.guarantee for each in found.readings}
    assert said["append; from marker"] == "at-least-once"
    assert said["upsert; from marker"] == "exactly-once"
    assert "visible  write store/all.txt" in found.text()
    assert all(Design.parse(str(each.design)) == each.design for each in found.readings)


def test_without_them_the_kinds_that_are_not_known_are_named() -> None:
    found = standing(NAMES)
    assert found.orders is None
    assert found.unknown == ("create store/done", "create store/all.txt", "write store/all.txt", "write store/done")
    assert "4 kind(s) of effects are not known" in found.text()
    assert "--write 'create store/done=visible'" in found.text()


@pytest.mark.parametrize(
    ("name", "order", "told"),
    [
        ("spark_append_parquet", "plan > staged > visible > clean > decision", "hadoop"),
        ("spark_file_sink", "plan > staged > visible+marker > decision", "spark_file_sink"),
        ("delta_append", "plan > staged > visible > decision", "delta"),
        ("iceberg_append", "plan > staged > visible > decision", "iceberg"),
        ("spark_psycopg_upsert", "plan > visible > decision", "postgres"),
        ("spark_kafka_sink", "plan > visible > decision", "kafka_plain"),
        ("kafka_commit_first", "notice > visible", "kafka_plain"),
        ("kafka_transactions", "visible+notice", "kafka_transactions"),
        ("flink_file_sink", "staged > state+decision > visible", "flink_file_sink"),
        ("flink_kafka_sink", "staged > state+decision > visible", "flink_kafka_sink"),
    ],
)
def test_an_engine_is_recognised_by_its_effects(name: str, order: str, told: str) -> None:
    found = standing(kept(name))
    assert str(found.orders) == order, found.text()
    assert told in found.engines


def with_modes(names: list[str]) -> list[str]:
    """The same record, of an engine that sets the mode of everything that it makes."""
    made = [name.partition(" ")[2] for name in names if name.startswith(("create ", "mkdir ", "rename "))]
    changed = iter([f"attributes {name}" for name in made])
    return [
        each
        for name in names
        for each in ([name, next(changed)] if name.startswith(("create ", "mkdir ", "rename ")) else [name])
    ]


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDS.glob("*.json")))
def test_modes_that_an_engine_sets_change_no_order(name: str) -> None:
    names = kept(name)
    found, usual = standing(with_modes(names)), standing(names)
    assert (found.unknown, str(found.orders)) == (usual.unknown, str(usual.orders))


def test_attributes_of_a_file_that_no_engine_makes_are_not_guessed() -> None:
    names = [*kept("spark_file_sink"), "sync store/all.txt #1", "attributes store/all.txt #1"]
    assert standing(names).unknown == ("attributes store/all.txt",)
    found = standing(names, [user_row("attributes store/all.txt=marker")])
    assert found.unknown == ()
    assert "attributes d" in standing(["mkdir d #1", "attributes d #1"]).unknown
    assert attribute_rows(["sync a #1", "attributes a #1"], engine_rows("lab")) == ()


def test_every_table_of_an_engine_has_a_sign() -> None:
    assert all(each.sign for each in engines().values())


def test_the_names_of_the_table_stand_beside_their_reading() -> None:
    said = {each.chosen: each.built for each in standing(kept("spark_file_sink")).readings}
    assert "spark-files" in said["transaction; from decision, skips marked"]
    assert not said["transaction; from decision"]


def test_an_order_that_no_recovery_reads_stands_nowhere() -> None:
    assert list(readings(parse_order("visible > plan > marker > decision"))) == []
    names = ["write out #1", "write plan #1", "write done #1"]
    rows = ["write out=visible", "write plan=plan", "write done=decision"]
    found = standing(names, [user_row(each) for each in rows])
    assert found.orders is not None
    assert "No cell of the table has this order" in found.text()


def test_interleaved_writes_are_said_to_have_no_order() -> None:
    names = ["write store/all.txt #1", "write store/done #1", "write store/all.txt #2"]
    rows = [user_row(each) for each in SAMPLES]
    found = standing(names, rows, ends="exit")
    assert "alternate" in found.because
    assert found.text() == found.because


# The command.


def test_the_command_says_where_a_pipeline_stands(tmp_path: Path) -> None:
    place = record(tmp_path / "seen")
    rows = [word for each in SAMPLES for word in ("--write", each)]
    code, out, err = labkit("orders", "--of", place, *rows)
    assert (code, err) == (0, "")
    assert out.startswith("3 step(s), each in the order: visible > marker\n")
    code, out, _ = labkit("orders", "--of", place, *rows, "--json")
    plain = json.loads(out)
    assert (code, plain["order"], plain["steps"]) == (0, "visible > marker", 3)
    assert plain["readings"][0]["design"].startswith("visible > marker; append")


def test_the_command_ends_with_2_where_an_effect_is_not_known(tmp_path: Path) -> None:
    code, out, _ = labkit("orders", "--of", record(tmp_path / "seen"))
    assert code == 2
    assert "write store/done" in out


def test_a_report_of_a_crash_test_is_a_record_too(tmp_path: Path) -> None:
    place = record(tmp_path / "seen")
    shutil.move(place / "effects.json", place / "report.json")
    assert read_names(place) == NAMES


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--of", "nowhere"), "there is no such record"),
        (("--of", "broken.json"), "not a record of effects"),
        (("--of", "seen", "--write", "store"), "this is not of the form EFFECT=WRITE"),
        (("--of", "seen", "--write", "a b=visble"), "did you mean 'visible'"),
        (("--of", "seen", "--design", "visible"), "leave --design, --cheapest and --fault out"),
        (("--ends", "exit"), "name this record with --of"),
    ],
)
def test_a_wrong_call_gets_one_sentence(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    record(tmp_path / "seen")
    (tmp_path / "broken.json").write_text("[1]")
    assert said in refusal("orders", *arguments, cwd=tmp_path)


def test_no_row_of_a_person_is_read_as_something_else() -> None:
    with pytest.raises(InvalidInput):
        user_row("=visible")
    assert user_row("send a=b COMMIT=commits").pattern == "send a=b COMMIT"
