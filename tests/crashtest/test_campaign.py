"""A test as a whole on real Spark, where a healthy run is enough to see what is to be seen."""

from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee
from labkit.crashtest.campaign import campaign, crash_test
from labkit.crashtest.instrument.effects import BOUNDS, Effect, Kind
from labkit.crashtest.rows import Shape
from labkit.crashtest.settings import settings

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("java")]

RESET = """
def reset():
    for path in STORE.glob("part-*"):
        path.rename(STORE.with_name(f"kept-{path.name}"))
"""
READ = """
def read():
    return [json.loads(line) for path in sorted(STORE.glob("**/part-*")) for line in path.read_text().splitlines()]
"""
PARTITIONS = """
import json, os
from pathlib import Path
STORE = Path(__file__).with_name("store")
def put(rows):
    STORE.mkdir(exist_ok=True)
    for row in rows:
        (STORE / f"part-{row.id}").write_text(json.dumps(row.asDict()))
def sink(df, batch):
    df.foreachPartition(put)
"""
JVM = """
import json, os
from pathlib import Path
STORE = Path(__file__).with_name("store")
def sink(df, batch):
    df.write.mode("append").json(str(STORE))
"""
HELPED = """
import json, os
from pathlib import Path
from beside import put
STORE = Path(__file__).with_name("store")
def sink(df, batch):
    STORE.mkdir(exist_ok=True)
    put(STORE / f"part-{batch}", "".join(json.dumps(row.asDict()) + "\\n" for row in df.collect()))
"""


def healthy(folder: Path, text: str, **more: object) -> tuple[list[Effect], Shape, str]:
    """The effects of a run without a crash, what its reader returns, and the report of that run alone."""
    file = folder / "sink.py"
    file.write_text(text + READ)
    with campaign(settings(f"{file}:sink", batches=2, **more), folder / "out") as running:  # type: ignore[arg-type]  # options by name, as the callee takes them
        assert running.healthy().guarantee is Guarantee.EXACTLY_ONCE
        assert [each.unknown for each in running.results if each.unknown] == []
        return running.log, running.shape, running.report().text()


def test_what_a_task_does_for_a_foreach_batch_function_is_recorded(tmp_path: Path) -> None:
    log, _, _ = healthy(tmp_path, PARTITIONS)
    tasks = {each.where for each in log if each.kind is Kind.WRITE}
    assert tasks == {"task 0", "task 1"}
    assert sum(each.kind is Kind.WRITE for each in log) == 20
    assert {each.line for each in log if each.kind is Kind.WRITE} == {8}


def test_a_write_of_the_jvm_is_one_effect_and_the_report_says_so(tmp_path: Path) -> None:
    log, _, text = healthy(tmp_path, JVM)
    assert [each.kind for each in log if each.kind not in BOUNDS] == [Kind.JVM, Kind.JVM]
    assert "line 6 lets the JVM write" in text


def test_what_a_module_beside_the_sink_does_is_the_sink_s(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def put(path, text):\n    path.write_text(text)\n")
    log, _, _ = healthy(tmp_path, HELPED)
    assert [each.kind for each in log if each.batch == 1 and each.kind not in BOUNDS and not each.failed] == [
        Kind.CREATE,
        Kind.WRITE,
    ]
    writes = {(each.file, each.line) for each in log if each.kind is Kind.WRITE}
    assert writes == {("beside.py", 2)}


def test_the_user_s_own_rows_go_in_and_come_out(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"id": {number * 3}, "name": "n{number % 2}"}}\n' for number in range(9)))
    text = HELPED.replace("from beside import put", "def put(p, t): p.write_text(t)")
    _, shape, _ = healthy(tmp_path, f"{text}{RESET}", rows=rows)
    assert shape is Shape.ROWS
    first = (tmp_path / "kept-part-0").read_text().splitlines()
    assert sorted(first) == [f'{{"id": {number * 3}, "name": "n{number % 2}"}}' for number in range(4)]


def test_a_store_that_cannot_be_emptied_gets_rows_of_its_own_in_every_run(tmp_path: Path) -> None:
    file = tmp_path / "sink.py"
    file.write_text(HELPED.replace("from beside import put", "def put(p, t): p.write_text(t)") + READ)
    text = file.read_text().replace('f"part-{batch}"', 'f"part-{os.urandom(8).hex()}"')
    file.write_text(text)
    with campaign(settings(f"{file}:sink", batches=2), tmp_path / "out") as running:
        running.healthy()
        first, *_ = [job for job in running.jobs() if job.id == "b0.call.3.after"]
        assert running.run(first).violated == ("duplicate",)
    ids = list((tmp_path / "store").iterdir())
    assert len(ids) == 5
    with pytest.raises(InvalidInput, match="not empty"), campaign(settings(f"{file}:sink"), tmp_path / "out2"):
        pass


LATE = """
import json, os, time
from pathlib import Path
STORE = Path(__file__).with_name("store")
def sink(df, batch):
    STORE.mkdir(exist_ok=True)
    rows = df.collect()
    (STORE / f"begun-{batch}").write_text("")
    time.sleep(6 * (batch == 1))
    with (STORE / "part-0").open("a") as file:
        file.write("".join(json.dumps(row.asDict()) + "\\n" for row in rows))
"""


def test_a_stopped_driver_is_watched_until_it_has_nothing_left_to_do(tmp_path: Path) -> None:
    """Continued before a first effect, it writes its rows six seconds later: longer than a store is watched."""
    file = tmp_path / "sink.py"
    file.write_text(LATE + READ)
    report = crash_test(f"{file}:sink", quick=True, only=("stopped_driver",), folder=tmp_path / "out")
    print(report.text())
    assert report.summary.conditions == {"stopped_driver": Guarantee.AT_LEAST_ONCE}


HEARD = """
import json, os, threading, time, uuid
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
STORE, HEARD = Path(__file__).with_name("store"), Path(__file__).with_name("heard")
LOADED = uuid.uuid4().hex
class Hears(StreamingQueryListener):
    def onQueryStarted(self, event): pass
    def onQueryProgress(self, event):
        with HEARD.open("a") as file:
            file.write(f"{os.getpid()} {LOADED} {event.progress.id}\\n")
    def onQueryTerminated(self, event): pass
hears, begun = Hears(), []
def sink(df, batch):
    if not begun:
        begun.append(START)
    STORE.mkdir(exist_ok=True)
    rows = df.collect()
    (STORE / f"part-{batch}").write_text("".join(json.dumps(row.asDict()) + "\\n" for row in rows))
"""
LISTENER = "SparkSession.builder.getOrCreate().streams.addListener(hears)"
THREAD = "threading.Thread(target=lambda: time.sleep(600), daemon=True).start()"


@pytest.mark.parametrize("start", [LISTENER, THREAD], ids=["listener", "thread"])
def test_a_run_begins_without_what_the_sink_started_in_another(start: str, tmp_path: Path) -> None:
    """In a new process there is neither a listener nor a thread from before."""
    file = tmp_path / "sink.py"
    file.write_text(HEARD.replace("START", start) + READ)
    points = ("b0.call.returns", "b1.call.returns")
    report = crash_test(f"{file}:sink", quick=True, only=points, folder=tmp_path / "out")
    print(report.text())
    assert not any(each.violated or each.unknown for each in report.summary.results)
    logs = [path.read_text() for path in (tmp_path / "out" / "drivers").glob("*.log")]
    what = "the listener" if start is LISTENER else "the thread"
    assert sum(what in log for log in logs) == 3
    if start is LISTENER:
        heard = [line.split() for line in (tmp_path / "heard").read_text().splitlines()]
        queries = {(pid, query) for pid, _, query in heard}
        assert len({pid for pid, _ in queries}) == len(queries)
