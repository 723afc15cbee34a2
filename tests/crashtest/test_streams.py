"""Sinks of Spark's own, and queries that the user's code starts: cut in the middle."""

from pathlib import Path

import pytest

from labkit.core.judge import Guarantee
from labkit.crashtest.blackbox.jobs import single_job
from labkit.crashtest.blackbox.points import Point
from labkit.crashtest.kernel import kernel_campaign
from labkit.crashtest.settings import settings

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("nothing_is_left")]

READER = """
import json, shutil
from pathlib import Path
STORE = Path(__file__).with_name("store")
def read():
    return [json.loads(line) for path in sorted(STORE.glob("**/part-*.json")) for line in path.read_text().splitlines()]
def reset():
    shutil.rmtree(STORE, ignore_errors=True)
"""


def test_a_format_is_tested_by_its_name(tmp_path: Path) -> None:
    """The folder is listed by its reader, so a task that comes again is seen twice."""
    file = tmp_path / "reader.py"
    file.write_text(READER)
    wanted = settings(
        sink_format="json",
        options=(f"path={tmp_path / 'store'}",),
        watch=(str(tmp_path / "store"),),
        reader=f"{file}:read",
        batches=2,
        seconds=900,
    )
    with kernel_campaign(wanted, tmp_path / "out") as running:
        assert running.healthy().guarantee is Guarantee.EXACTLY_ONCE
        log = next(name for name in running.points if "_spark_metadata" in name and name.startswith("rename"))
        crashes = [single_job(Point(name, 0)) for name in (log, "rename checkpoint/commits/<n> #2")]
        twice, once = map(running.run, crashes)
    assert (twice.unknown, once.unknown, once.violated) == ("", "", ())
    assert "duplicate" in twice.violated


TABLE = """
import json, shutil
from pathlib import Path
import pyarrow.parquet
HERE = Path(__file__).parent
def read():
    logs = sorted((HERE / "warehouse" / "orders" / "_spark_metadata").glob("[0-9]*"))
    lines = [line for log in logs for line in log.read_text().splitlines()[1:]]
    files = [json.loads(line)["path"].removeprefix("file://") for line in lines]
    return [row for file in files for row in pyarrow.parquet.read_table(file).to_pylist()]
def reset():
    for name in ("warehouse", "metastore"):
        shutil.rmtree(HERE / name, ignore_errors=True)
"""


@pytest.mark.variant
def test_a_table_is_tested_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # Derby writes its log into the working folder
    file = tmp_path / "reader.py"
    file.write_text(TABLE)
    place = tmp_path / "metastore"
    wanted = settings(
        table="orders",
        watch=(str(tmp_path),),
        reader=f"{file}:read",
        batches=2,
        limit=120,  # the first batch starts a metastore
        conf=(
            "spark.sql.catalogImplementation=hive",
            f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}",
            f"spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:derby:;databaseName={place};create=true",
        ),
    )
    with kernel_campaign(wanted, tmp_path / "out") as running:
        assert running.healthy().guarantee is Guarantee.EXACTLY_ONCE
        assert any("_spark_metadata" in name for name in running.points)


STARTS = """
import json, os
from pathlib import Path
STORE = Path(__file__).with_name("store")
def put(df, batch):
    STORE.mkdir(exist_ok=True)
    (STORE / f"part-{os.urandom(4).hex()}.json").write_text(
        "".join(json.dumps(row.asDict()) + "\\n" for row in df.collect()))
def start(stream):
    query = stream.writeStream.queryName("orders").foreachBatch(put).trigger(processingTime="1 second")
    query.start(checkpointLocation="elsewhere").awaitTermination()
    (STORE / "finished").touch()
"""


@pytest.mark.variant
def test_a_function_that_starts_and_awaits_its_query_is_tested_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own checkpoint, trigger and name do not stand in the way, and what it does after the query is waited for."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "job.py"
    file.write_text(STARTS + READER.partition("STORE = ")[2].partition("\n")[2])
    file.write_text(file.read_text().replace("import json, os", "import json, os, shutil"))
    with kernel_campaign(settings(f"{file}:start", batches=2, seconds=900), tmp_path / "out") as running:
        assert running.healthy().guarantee is Guarantee.EXACTLY_ONCE
        assert running.points["create store/finished #1"]
        assert [each.id for each in running.results] == ["healthy"]  # all of it is seen
        jobs = {job.id: job for job in running.jobs()}
        assert running.run(jobs["rename checkpoint/commits/<n> #1"]).violated == ("duplicate",)
        assert not running.run(jobs["two_queries"]).unknown
    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "store").exists()  # the reader's reset has the last word
