"""Names of effects are the same in every run that does the same, and different for what is different. No Spark here."""

import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labkit.cli import execute
from labkit.core.errors import InvalidInput
from labkit.crashtest.blackbox import effects as effects_module
from labkit.crashtest.blackbox.durability import synced_by
from labkit.crashtest.blackbox.effects import Effect, Namer, mask, unordered
from labkit.crashtest.blackbox.lanes import LANES, SHAPES, Lanes
from labkit.crashtest.blackbox.messages import word
from labkit.crashtest.blackbox.xray import XRay, xray
from labkit.host.syscalls.calls import Answer, Call, CallKind, WatchedRun
from labkit.host.syscalls.support import supported
from labkit.host.syscalls.watching import watch

FOLDER = Path("/work")
UUIDS = ("0b9f2a36-1a2b-4c3d-8e9f-001122334455", "77777777-aaaa-4bbb-8ccc-0123456789ab")
KINDS = {kind.value: kind for kind in CallKind}


def call(text: str, *, pid: int = 900, process: int = 900) -> Call:
    """`rename a b`, `write a`, `send 127.0.0.1:1`, `exit`."""
    kind, *words = text.split()
    first, second = [*words, "", ""][:2]
    if kind == "send":
        first, second = "", first
    paths = [each and (each if ":" in each else os.path.normpath(FOLDER / each)) for each in (first, second)]
    name = "fsync" if kind == "sync" else kind
    return Call(1, pid, process, KINDS[kind], name, paths[0], paths[1], 1, 0.0)


def named(texts: Sequence[str], **options: object) -> list[Effect]:
    namer = Namer([FOLDER], **options)  # type: ignore[arg-type]  # options by name, as the callee takes them
    effects = [namer.name(call(text)) for text in texts]
    return [each for each in effects if each is not None]


def names(texts: Sequence[str], **options: object) -> list[str]:
    return [each.name for each in named(texts, **options)]


@pytest.mark.parametrize(
    ("file", "masked"),
    [
        ("offsets/3", "offsets/<n>"),
        (f"offsets/.3.{UUIDS[0]}.tmp", "offsets/.<n>.<uuid>.tmp"),
        ("_delta_log/00000000000000000003.json", "_delta_log/<n>.json"),
        ("metadata/v3.metadata.json", "metadata/v<n>.metadata.json"),
        (f"metadata/00003-{UUIDS[0]}.metadata.json", "metadata/<n>-<uuid>.metadata.json"),
        ("chk-12/_metadata", "chk-<n>/_metadata"),
        ("savepoint-60071a-0abb4c613896/_metadata", "savepoint-<hex>/_metadata"),
        ("savepoint-123456-012345678901/_metadata", "savepoint-<hex>/_metadata"),
        ("state/0/3/2.delta", "state/0/3/<n>.delta"),
        (f"part-00001-{UUIDS[0]}-c000.parquet", "part-00001-<uuid>-c000.parquet"),
        (f"data/00000-4-{UUIDS[0]}-0-00001.parquet", "data/00000-<n>-<uuid>-0-00001.parquet"),
        ("x/attempt_20261122145501446637_0001_m_000000_3/part-0", "x/attempt_<n>_0001_m_000000_<n>/part-0"),
        ("marker-1700000000123", "marker-<n>"),
        (".rows.4711-0.tmp", ".rows.<pid>-0.tmp"),
        ("tmpab12cd34/x", "tmp<x>/x"),
        ("tmp.Ab3dE9fGh1", "tmp<x>"),
        ("cafe1234", "<hex>"),
        ("done-3", "done-3"),
        ("tmp_outputs", "tmp_outputs"),
        ("temperature/2026-11-22.csv", "temperature/2026-11-22.csv"),
        ("decade/facade", "decade/facade"),
    ],
)
def test_what_differs_from_run_to_run_is_masked(file: str, masked: str) -> None:
    assert mask(file, pids=[4711]) == masked


SPARK = [
    f"create offsets/.0.{UUIDS[0]}.tmp",
    f"rename offsets/.0.{UUIDS[0]}.tmp offsets/0",
    f"rename out/_temporary/0/part-00000-{UUIDS[0]}-c000.parquet out/part-00000-{UUIDS[0]}-c000.parquet",
    f"rename out/_temporary/0/part-00001-{UUIDS[0]}-c000.parquet out/part-00001-{UUIDS[0]}-c000.parquet",
    "rename commits/.0.tmp commits/0",
    "send 127.0.0.1:5432",
    f"rename offsets/.1.{UUIDS[1]}.tmp offsets/1",
    "send 127.0.0.1:5432",
    "exit",
]


def test_names_of_a_run() -> None:
    assert names(SPARK) == [
        "create offsets/.<n>.<uuid>.tmp #1",
        "rename offsets/<n> #1",
        "rename out/part-00000-<uuid>-c000.parquet #1",
        "rename out/part-00001-<uuid>-c000.parquet #1",
        "rename commits/<n> #1",
        "send 127.0.0.1:5432 #1",
        "rename offsets/<n> #2",
        "send 127.0.0.1:5432 #2",
        "exit",
    ]
    assert named(SPARK)[3].family == "rename out/part-<n>-<uuid>-c<n>.parquet"
    assert named(SPARK)[5].family == "send 127.0.0.1:5432"


def test_another_run_has_the_same_names() -> None:
    swapped = {UUIDS[0]: UUIDS[1], UUIDS[1]: UUIDS[0]}
    other = [
        " ".join(
            next((word.replace(old, new) for old, new in swapped.items() if old in word), word) for word in text.split()
        )
        for text in SPARK
    ]
    assert other != SPARK
    assert names(other) == names(SPARK)


def test_files_of_one_step_keep_their_names_in_whatever_order_they_come() -> None:
    """Masked into one name, the first would be another file in every run, and a kill would be elsewhere."""
    files = [f"create out/part-{number:05}" for number in range(6)]
    for seed in range(5):
        shuffled = random.Random(seed).sample(files, len(files))
        by_file = dict(zip(shuffled, names(shuffled), strict=True))
        assert by_file == dict(zip(files, names(files), strict=True))


def test_entries_in_an_order_that_is_chance_keep_their_numbers() -> None:
    texts = ["create out/1", "create out/0", "create out/2", "create log/0", "create log/1"]
    healthy = named(texts)
    assert unordered(healthy) == {"out/<n>"}
    assert names(texts, numbered=unordered(healthy)) == [
        "create out/1 #1",
        "create out/0 #1",
        "create out/2 #1",
        "create log/<n> #1",
        "create log/<n> #2",
    ]


def test_entries_of_several_threads_keep_their_numbers() -> None:
    namer = Namer([FOLDER])
    effects = [namer.name(call(f"create out/{n}", pid=1000 + n)) for n in range(3)]
    assert unordered([each for each in effects if each]) == {"out/<n>"}
    one_by_one = Namer([FOLDER])
    children = [one_by_one.name(call(f"create out/{n}", pid=1000 + n, process=1000 + n)) for n in range(3)]
    assert unordered([each for each in children if each]) == frozenset()


def test_what_lies_elsewhere_and_what_is_ignored_moves_no_count() -> None:
    texts = ["write rows", "write x.log", "write rows", "send 10.0.0.1:514", "write rows"]
    wanted = ["write rows #1", "write rows #2", "write rows #3"]
    assert names(texts, ignored=["*.log", "10.0.0.1:*"]) == wanted
    namer = Namer([Path("/elsewhere")])
    assert [namer.name(call(text)) for text in texts if "send" not in text] == [None] * 4


def kafka(key: int, body: bytes = b"rest") -> bytes:
    inner = key.to_bytes(2) + (7).to_bytes(2) + b"\0\0\0\1" + body
    return len(inner).to_bytes(4) + inner


def postgres(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4) + body


MESSAGES = [
    (kafka(0), "Produce"),
    (kafka(8), "OffsetCommit"),
    (kafka(26), "EndTxn"),
    (kafka(3), "Metadata"),
    (kafka(99), ""),
    (kafka(0)[:-1], ""),
    (postgres(b"Q", b"COMMIT\0"), "COMMIT"),
    (postgres(b"P", b"name\0 insert into t values ($1)\0\0\0") + postgres(b"S", b""), "INSERT"),
    (postgres(b"B", b"\0name\0") + postgres(b"E", b"\0\0\0\0\0"), "Bind"),
    (postgres(b"X", b""), "Terminate"),
    ((12).to_bytes(4) + (196608).to_bytes(4) + b"user", "Startup"),
    ((8).to_bytes(4) + (80877103).to_bytes(4), "SSLRequest"),
    (b"POST /rows HTTP/1.1\r\n", "POST"),
    (b"*3\r\n$3\r\nset\r\n$1\r\na\r\n", "SET"),
    (b"anything else", ""),
    (b"", ""),
]


@pytest.mark.parametrize(("content", "said"), MESSAGES)
def test_a_message_is_told_by_its_first_bytes(content: bytes, said: str) -> None:
    assert word(content[:64], len(content)) == said


def test_a_client_that_asks_by_the_clock_moves_no_count() -> None:
    """Kafka's clients ask for metadata when it is time: a different number of times in every run."""

    def sent(keys: Sequence[int]) -> list[str]:
        namer = Namer([FOLDER])
        calls = [replace(call("send 127.0.0.1:9092"), head=kafka(key), size=len(kafka(key))) for key in keys]
        return [each.name for each in map(namer.name, calls) if each]

    quiet, chatty = [0, 8, 0, 8], [18, 3, 0, 3, 8, 12, 0, 1, 3, 8]
    assert sent(quiet) == sent(chatty)
    assert sent(quiet) == [
        "send 127.0.0.1:9092 Produce #1",
        "send 127.0.0.1:9092 OffsetCommit #1",
        "send 127.0.0.1:9092 Produce #2",
        "send 127.0.0.1:9092 OffsetCommit #2",
    ]


def test_two_watched_folders_are_told_apart() -> None:
    namer = Namer([FOLDER / "one", FOLDER / "two"])
    effects = [namer.name(call(text)) for text in ("write one/a", "write two/a")]
    assert [each and each.name for each in effects] == ["write one/a #1", "write two/a #1"]


@pytest.mark.parametrize(
    ("text", "lane"),
    [
        ("rename offsets/.0.tmp offsets/0", "plan"),
        ("rename commits/.0.tmp commits/0", "decision"),
        ("write state/0/1/3.delta", "state"),
        ("rename a/b.tmp out/_spark_metadata/0", "decision"),
        ("write out/_temporary/0/task/part-00000", "data"),
        ("rename out/_temporary/0/part-00000 out/part-00000", "visible"),
        ("rename checkpoints/x/chk-3/.y checkpoints/x/chk-3/_metadata", "decision"),
        (f"write out/.part-{UUIDS[0]}-0.inprogress.{UUIDS[1]}", "data"),
        (f"rename out/.part-{UUIDS[0]}-0.inprogress.x out/part-{UUIDS[0]}-0", "visible"),
        ("create table/_delta_log/00000000000000000000.json", "decision"),
        ("create table/metadata/v3.metadata.json", "decision"),
        ("write table/metadata/snap-1.avro", "data"),
        ("mkdir checkpoints/x/chk-3", "state"),
        ("write x/savepoint-60071a-0abb4c613896/._metadata.inprogress.x", "state"),
        ("rename y x/savepoint-60071a-0abb4c613896/_metadata", "decision"),
        ("write out/.part-00000-c000.snappy.parquet.crc", "data"),
        ("rename x out/.part-00000-c000.snappy.parquet.crc", "visible"),
        ("write out/._SUCCESS.crc", "decision"),
        ("write checkpoints/..metadata.tmp.crc", "other"),
        ("unlink rows.db-journal", "decision"),
        ("write rows.db-journal", "plan"),
        ("send 127.0.0.1:5432", "send"),
        ("write notes.txt", "other"),
        ("exit", "other"),
    ],
)
def test_lanes_of_known_shapes(text: str, lane: str) -> None:
    assert Lanes().of(named([text])[0]) == lane


def test_every_row_of_the_table_names_a_lane() -> None:
    assert {shape.lane for shape in SHAPES} <= set(LANES)


def test_lanes_of_ones_own_come_first() -> None:
    lanes = Lanes(["decision=manifests/*", "broker=127.0.0.1:*"])
    effects = named(["rename x manifests/7", "send 127.0.0.1:9092", "write rows"])
    assert [lanes.of(each) for each in effects] == ["decision", "broker", "other"]
    assert lanes.names()[-1] == "broker"
    sums = Lanes(["sums=*.crc"])
    assert sums.of(named(["write out/.part-00000.crc"])[0]) == "sums"


@pytest.mark.parametrize("text", ["manifests/*", "=x", "decision=", ""])
def test_a_lane_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="write NAME=GLOB"):
        Lanes([text])


def test_what_survives_a_loss_of_power() -> None:
    texts = [
        "create .a.tmp",
        "write .a.tmp",
        "sync .a.tmp",
        "rename .a.tmp a",
        "write b",
        "sync .",
        "write c",
        "rename c d",
        "sync d",
        "unlink a",
    ]
    effects = named(texts)
    syncs = [each and effects.index(each) for each in synced_by(effects)]
    assert syncs == [5, 2, None, 5, None, None, 8, None, None, None]


def test_a_sync_of_the_data_alone_does_not_make_a_mode_durable(place: Path) -> None:
    command = "echo a > f; chmod 600 f; sync -d f; chmod 640 f; echo b >> f; sync f; chmod 600 f"
    found = xray(command, [place], place.parent / "log", lanes=Lanes())
    names = [each.name for each in found.effects]
    syncs = {
        each.name: sync.name if sync else None
        for each, sync in zip(found.effects, synced_by(found.effects), strict=True)
    }
    assert [each.synced for each in found.lines() if each.first.kind is CallKind.ATTRIBUTES] == [True, True, False]
    assert [name for name in names if name.startswith("sync")] == ["sync f #1", "sync f #2"]
    assert {name: sync for name, sync in syncs.items() if name.startswith(("attributes", "write"))} == {
        "write f #1": "sync f #1",
        "attributes f #1": "sync f #2",
        "attributes f #2": "sync f #2",
        "write f #2": "sync f #2",
        "attributes f #3": None,
    }


# A real run.

PIPELINE = (
    "for i in 0 1; do echo $i > offsets/.$i.tmp; mv offsets/.$i.tmp offsets/$i; echo row >> part-0; sync part-0; "
    "sh -c 'echo row >> part-0'; echo ok > commits/.$i.tmp; mv commits/.$i.tmp commits/$i; done"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if why := supported():
        pytest.skip(why)
    folder = tmp_path.resolve() / "work"
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def seen(place: Path, run: Callable[..., WatchedRun] = watch) -> XRay:
    return xray(PIPELINE, [place], place.parent / "log", lanes=Lanes(), run=run)


STEP = [
    "plan create offsets/.{}.tmp",
    "plan write offsets/.{}.tmp",
    "plan rename offsets/{}",
    "data create part-0",
    "data write part-0",
    "data sync part-0",
    "data write part-0",
    "decision create commits/.{}.tmp",
    "decision write commits/.{}.tmp",
    "decision rename commits/{}",
]


def check(found: XRay) -> None:
    """Everything that is to be seen of `PIPELINE`, in order."""
    first = [text.format(0) for text in STEP]
    second = [text.format(1) for text in STEP if "create part" not in text]
    told = [f"{line.lane} {line.first.kind.value} {line.first.file}" for line in found.lines()]
    assert told == [*first, *second, "other exit "]
    lasting = [line.first.name for line in found.lines() if line.synced]
    # The child's line of step 0 is made to last by the sync of step 1; its own of step 1 by none.
    assert lasting == ["write part-0 #1", "write part-0 #2", "write part-0 #3"]
    assert found.notes() == []
    assert found.text().count("[not synced]") == 14
    picture = found.picture()
    assert picture.count('class="tg"') >= 14
    assert "Diamond: not synced" in picture
    assert "DELAY" not in picture


def test_a_pipeline_under_x_rays(place: Path) -> None:
    check(seen(place))


def test_entries_whose_order_is_chance_have_the_names_of_a_crash_test(place: Path) -> None:
    command = "for n in 2 1; do : > offsets/$n; done; for n in 1 2; do : > commits/$n; done"
    found = xray(command, [place], place.parent / "log", lanes=Lanes())
    assert [each.name for each in found.effects] == [
        "create offsets/2 #1",
        "create offsets/1 #1",
        "create commits/<n> #1",
        "create commits/<n> #2",
        "exit",
    ]


MUTANTS: dict[str, Callable[[list[Call]], list[Call]]] = {
    "none": lambda calls: calls,
    "drops a call": lambda calls: calls[:4] + calls[5:],
    "forgets the children": lambda calls: [each for each in calls if each.process == calls[-1].process],
    "swaps two calls": lambda calls: [calls[1], calls[0], *calls[2:]],
    "masks too much": lambda calls: calls,
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_eyes_that_see_less_are_noticed(place: Path, mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` can fail: it does for every mutant, and for none it holds."""

    def poor(*words: Any, **options: Any) -> WatchedRun:
        calls: list[Call] = []
        decide = options.pop("decide")

        def keep(each: Call) -> Answer:
            calls.append(each)
            return Answer.GO_ON

        ended = watch(*words, decide=keep, **options)
        for each in MUTANTS[mutant](calls):
            decide(each)
        return ended

    if mutant == "masks too much":
        monkeypatch.setattr(effects_module, "mask", lambda *_a, **_k: "<n>")
    expected = nullcontext() if mutant == "none" else pytest.raises(AssertionError)
    found = seen(place, poor)
    with expected:
        check(found)


def test_the_command_line(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["--command", PIPELINE, "--json", "--out", str(out), "--lane", "rows=part-*"]
    assert execute(["effects", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["lane"] for each in told["effects"]][:4] == ["plan", "plan", "plan", "rows"]
    assert told["effects"][2]["name"] == "rename offsets/<n> #1"
    assert told == json.loads((out / "effects.json").read_text())
    assert sorted(path.name for path in out.iterdir()) == ["command.log", "effects.json", "effects.svg", "effects.txt"]
    shutil.rmtree(out)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--command", "true", "--watch", "missing"], 64, "--watch missing: there is no such folder"),
        (["--command", "true", "--lane", "x"], 64, "write NAME=GLOB"),
        (["--command", "true", "--out", "offsets"], 64, "already exists"),
        (["--command", "true"], 2, "no durable effect was seen"),
        (["--command", "echo x > a; no-such-program"], 1, "ended with status 127"),
        (["--command", "echo x > a; sleep 600", "--limit", "1"], 0, "did nothing more and did not end"),
        (["--command", "echo x > a; sleep 600 &", "--limit", "1"], 0, "what the command left running did nothing more"),
        (["--command", "true", "--limit", "0"], 64, "must be more than 0"),
        (["--comand", "true"], 64, "See labkit effects --help."),
        ([], 64, "Missing option '--command'"),
    ],
)
def test_bad_input_of_the_command_line(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    got = execute(["effects", *words])
    captured = capsys.readouterr()
    told = captured.out + captured.err
    assert got == code, told
    assert said in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_statements_for_a_real_server_are_told_by_what_they_are(place: Path, postgres: str) -> None:
    program = """
import psycopg, sys
with psycopg.connect(sys.argv[1]) as connection:
    connection.execute("CREATE TEMPORARY TABLE told (number int)")
    connection.execute("INSERT INTO told VALUES (%s)", [1])
"""
    (place / "program.py").write_text(program)
    command = f"{sys.executable} program.py '{postgres}'"
    found = xray(command, [place], place.parent / "log", lanes=Lanes())
    assert found.watched.status == 0, (place.parent / "log").read_text()
    said = [each.where.rpartition(" ")[2] for each in found.effects]
    own = [each for each in said if each not in ("SSLRequest", "Startup", "")]
    assert own == ["BEGIN", "CREATE", "INSERT", "COMMIT", "Terminate"]
    assert {line.lane for line in found.lines()} == {"send", "other"}
