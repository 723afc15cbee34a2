"""A batch in shards gives the grades of one batch: on plain processes, on Spark, and where a part of it dies."""

import signal
import subprocess
from pathlib import Path

import psutil
import pytest
import submitted
from batches import SEED, command, generate, grades
from waiting import until

from labkit.cli import execute
from labkit.core.errors import InvalidInput
from labkit.grading.batch import run
from labkit.grading.order import Order, Shard
from labkit.grading.shards import folder_of


def graded(folder: Path, out: str, **more: object) -> object:
    order = Order([folder / "in"], folder / out, submitted.COURSE, seed=SEED, workers=1, **more)
    return run(order, lambda *_: None)


def keys(out: Path) -> set[str]:
    return {path.name for path in (out / "records").glob("*.json")}


@pytest.mark.slow
def test_the_shards_of_a_batch_are_the_batch(tmp_path: Path) -> None:
    generate(tmp_path / "in", 4)
    graded(tmp_path, "whole")
    parts = [tmp_path / "parts" / name for name in ("1", "2")]
    for number, part in enumerate(parts, start=1):
        graded(tmp_path, f"parts/{part.name}", shard=Shard(number, 2))
    found = [keys(part) for part in parts]
    assert sorted(set.union(*found)) == sorted(keys(tmp_path / "whole"))
    assert sum(map(len, found)) == 4  # nobody is graded twice

    # One shard is missing, and one came twice: what is missing is graded where all is put together.
    done = graded(tmp_path, "merged", parts=[parts[0], tmp_path / "parts", parts[0]])
    assert grades(tmp_path / "merged") == grades(tmp_path / "whole")
    assert done.taken + done.graded == 4
    again = graded(tmp_path, "merged", parts=[tmp_path / "parts"])
    assert again.taken == 0
    assert grades(tmp_path / "merged") == grades(tmp_path / "whole")


@pytest.mark.slow
def test_what_a_shard_has_not_done_or_what_changed_since_is_graded(tmp_path: Path) -> None:
    for student in ("ada", "bob"):
        submitted.hand_in(tmp_path / "in", student, submitted.answers())
    graded(tmp_path, "part")
    submitted.hand_in(tmp_path / "in", "bob", submitted.answers(double=submitted.WRONG["01-double"]))
    done = graded(tmp_path, "merged", parts=[tmp_path / "part"])
    assert (done.taken, done.graded) == (1, 1)
    assert {one["sha256"] for one in grades(tmp_path / "merged").values()} != {
        one["sha256"] for one in grades(tmp_path / "part").values()
    }


@pytest.mark.parametrize("written", ["0/3", "4/3", "2", "2/3/4", "a/b", "1/100000"])
def test_what_is_no_shard_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match=f"^--shard {written}: this is not a shard"):
        Order.plan({"given": [Path()], "out": Path(), "seed": 1, "shard": written})


@pytest.mark.slow
def test_records_of_another_seed_and_folders_without_any_are_refused(tmp_path: Path) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    graded(tmp_path, "part")
    order = Order([tmp_path / "in"], tmp_path / "other", submitted.COURSE, seed=SEED + 1)
    with pytest.raises(InvalidInput, match=f"the seed {SEED}, not {SEED + 1}"):
        run(Order(order.given, order.out, order.course, SEED + 1, parts=[tmp_path / "part"]), lambda *_: None)
    assert not order.out.exists()
    with pytest.raises(InvalidInput, match="there is no such folder"):
        graded(tmp_path, "other", parts=[tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="no `labkit grade` has written there"):
        graded(tmp_path, "other", parts=[tmp_path / "empty"])
    (tmp_path / "part" / "grading.json").write_text("{")
    with pytest.raises(InvalidInput, match="this file cannot be read"):
        graded(tmp_path, "other", parts=[tmp_path / "part"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shard", "1/2"], "add --seed"),
        (["--shard", "1/2", "--seed", "1", "--master", "local[2]"], "leave one of the two out"),
        (["--shard", "1/2", "--seed", "1", "--only", "ada"], "copy existing grades"),
        (["--master", "local[2]", "--shards", "0"], "choose 1 to 10,000"),
        (["--shards", "3"], "only --master splits"),
        (["--master", "foo"], "write local[4]"),
        (["--master", "local[0]"], "write local[4]"),
        (["--master", ""], "write local[4]"),
        (["--records", ".", "--only", "ada"], "copy existing grades"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    given = ["grade", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    assert execute([*given, "--course", str(submitted.COURSE), *words]) == 64
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_somebody_else_keeps_where_shards_would_be_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    (tmp_path / "out.shards").mkdir()
    (tmp_path / "out.shards" / "thesis.txt").write_text("mine")
    given = ["grade", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    words = ["--course", str(submitted.COURSE), "--master", "local[2]"]
    assert execute([*given, *words]) == 64
    assert "`labkit grade` deletes the folder out.shards" in capsys.readouterr().err
    assert (tmp_path / "out.shards" / "thesis.txt").read_text() == "mine"


@pytest.mark.variant
@pytest.mark.slow
def test_spark_runs_the_shards_although_its_driver_dies(tmp_path: Path) -> None:
    """A lost executor is Spark's own affair: it runs the shard again."""
    generate(tmp_path / "in", 8)
    subprocess.run(command(tmp_path / "in", tmp_path / "whole"), check=True, capture_output=True)
    out = tmp_path / "spark"
    words = [*command(tmp_path / "in", out), "--master", "local[2]", "--shards", "4"]
    # A person who gives no seed must be able to go on, too.
    at = words.index("--seed")
    del words[at : at + 2]
    batch = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    parts = folder_of(out)
    until(lambda: len(list(parts.glob("*/records/*.json"))) >= 3, "three records of shards", seconds=300)
    below = psutil.Process(batch.pid).children(recursive=True)
    batch.send_signal(signal.SIGKILL)
    batch.wait()
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == []
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    assert len(grades(out)) == len(grades(tmp_path / "whole"))
    assert len({one["seed"] for one in grades(out).values()}) == 1
    assert (out / "grades.csv").read_text() == (tmp_path / "whole" / "grades.csv").read_text()
    assert not parts.exists()
