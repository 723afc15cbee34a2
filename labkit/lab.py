"""What notebooks import: a crash, its verdict, and the checkpoint's own files, in a few names.

Everything that the command line does has its equal here. Nothing here knows a protocol.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput
from labkit.core.words import columns, nearest
from labkit.host.doctor import examine
from labkit.host.java import find_java
from labkit.runs.conclude import conclude
from labkit.runs.conduct import PATIENCE
from labkit.runs.crash import crash, crash_each, finish, run_all
from labkit.runs.memory import Life, live
from labkit.runs.outcome import Outcome
from labkit.runs.pages.code import code
from labkit.runs.pages.grid import VerdictGrid, of_runs, simulated
from labkit.runs.prepare import fresh_folder, prepare, resume
from labkit.runs.progress import Tell, aloud, in_place, silent, words
from labkit.sim.models.kafka_log.timeouts import Examination, Timeouts
from labkit.sim.models.kafka_log.timeouts import examine as examine_timeouts
from labkit.spark.options import TWELVE_WORDS
from labkit.teach.cards import Examined, Findings, Trials
from labkit.teach.chains import Chains, chains
from labkit.teach.comparing import compare
from labkit.teach.engines import engines, kill_engines
from labkit.teach.glossary import word
from labkit.teach.hands_on import copy as copy_topic
from labkit.teach.hands_on import kafka, postgres, said, stopped_writers, ten_steps
from labkit.teach.name_errors import install
from labkit.teach.orders import orders
from labkit.teach.panel import panel
from labkit.teach.price import Effects, Expected, Rates, Waits
from labkit.teach.price import count_effects as counted_effects
from labkit.teach.price import expected_wait as expected
from labkit.teach.price import measure_rows as measured_rows
from labkit.teach.price import measure_waits as measured_waits
from labkit.teach.price.effects import SIZES as BATCHES
from labkit.teach.price.transactions import ROWS, SIZES
from labkit.teach.price.waiting import INTERVALS
from labkit.teach.study import Search, Walk, explore, points, replay, simulate
from labkit.view import charts
from labkit.view.pieces import Pieces
from labkit.view.show import explorer, show
from labkit.view.strip import strip
from labkit.view.timeline import by_key
from labkit.view.totals import Totals, totals_in

if TYPE_CHECKING:
    from labkit.spark.interactive import Session
    from labkit.teach import own
    from labkit.teach.questions.card import Answer

__all__ = [
    "TWELVE_WORDS",
    "Chains",
    "Outcome",
    "Search",
    "Walk",
    "aloud",
    "answer",
    "ask",
    "chains",
    "check",
    "code",
    "columns",
    "compare",
    "conclude",
    "copy_topic",
    "count_effects",
    "crash",
    "crash_each",
    "crash_test",
    "doctor",
    "done_and_left",
    "engines",
    "expected_wait",
    "explore",
    "explorer",
    "finish",
    "fresh_folder",
    "hint",
    "in_place",
    "kafka",
    "kill_engines",
    "matrix",
    "measure_rows",
    "measure_waits",
    "memory_sink",
    "orders",
    "panel",
    "pieces",
    "points",
    "postgres",
    "prepare",
    "progress",
    "replay",
    "reset",
    "resume",
    "run_all",
    "said",
    "save_sink",
    "seen_over_time",
    "show",
    "silent",
    "simulate",
    "spark",
    "stopped_writers",
    "strip",
    "ten_steps",
    "timeouts",
    "totals",
    "try_sink",
    "try_timeouts",
    "word",
    "words",
]


def doctor() -> Findings:
    """What this machine has and lacks, one finding a prerequisite."""
    return Findings(examine())


def pieces() -> Pieces:
    """The pieces of a streaming job in one picture: who reads, computes and writes, and what a crash leaves."""
    return Pieces()


def spark() -> "Session":
    """A Spark session in this kernel, to try things with: Java is found, logs are quiet, and it ends with the kernel.

    Raises `ServiceUnavailable` when there is no usable Java.
    """
    from labkit.spark.interactive import interactive_session

    return interactive_session()


@takes("lab.timeouts(interval=10, checkpoint=5, transaction=60)")
def timeouts(**seconds: float) -> Examination:
    """Whether a job that commits Kafka transactions with its checkpoints can lose data, as `labkit timeouts` says it.

    `interval`, `checkpoint` and `transaction` are needed; `maximum`, `pause`, `tolerated` and `downtime` may be given.
    Raises `InvalidInput`.
    """
    known = Timeouts._fields
    if missing := [name for name in known[:3] if name not in seconds]:
        raise InvalidInput(f"lab.timeouts() needs {', '.join(missing)}, in seconds.")
    if unknown := [name for name in seconds if name not in known]:
        raise InvalidInput(f"lab.timeouts() knows no {unknown[0][:40]}; {nearest(unknown[0][:40], list(known))}")
    tolerated = int(seconds.pop("tolerated", 0))
    return Examined(*examine_timeouts(Timeouts(**seconds, tolerated=tolerated)))


@takes('lab.seen_over_time({"append": outcome}, "hello")')
def seen_over_time(outcomes: Mapping[str, Outcome], key: str) -> charts.Seen:
    """A figure of what an outside reader could have seen of `key` in each run, and the data that it shows."""
    tracks = {name: by_key(outcome.record.events).get(key, []) for name, outcome in outcomes.items()}
    return charts.seen_over_time(tracks, key)


@takes('lab.done_and_left({"append": outcome})')
def done_and_left(outcomes: Mapping[str, Outcome]) -> charts.Done:
    """A figure of the mails that the job `shop` has sent in each run, beside the rows that are left, and its data."""
    return charts.done_and_left(
        {
            name: [charts.Counted(order.key, sent, left) for order, sent, left in outcome.done_and_left()]
            for name, outcome in outcomes.items()
        }
    )


@takes("lab.matrix(folder)")
def matrix(folder: Path | str | None = None) -> VerdictGrid:
    """Sinks by failpoints: the real runs in a folder of `labkit matrix`, or without one every cell in the simulator.

    Raises `InvalidInput` for a folder without runs.
    """
    return simulated() if folder is None else of_runs(Path(folder))


@takes("lab.try_timeouts(interval=6, transaction=3)")
def try_timeouts(interval: float, transaction: float) -> Trials:
    """Runs one checkpoint interval on the Kafka broker with steady traffic, a burst, and records just before its end.

    Both in seconds, and really waited for. Raises `ServiceUnavailable` without a broker.
    """
    from labkit.stores.kafka import timeouts

    return Trials(timeouts.try_timeouts(interval, transaction))


@takes('lab.totals("changelog.retract_stream")')
def totals(*scenarios: str) -> Totals:
    """A figure of what a reader finds who adds up a table that messages change, beside the batch query's total.

    Takes named scenarios of `changelog`. Raises `InvalidInput` for one that is unknown or of another model.
    """
    if not scenarios:
        raise InvalidInput('lab.totals() needs a scenario, as in lab.totals("changelog.retract_stream").')
    return Totals({name.rpartition(".")[2].replace("_", " "): totals_in(replay(name).walk) for name in scenarios})


@takes('lab.expected_wait("13-slope")')
def expected_wait(question: str) -> Expected:
    """An empty chart of waits against intervals, with the line that was predicted for this question.

    Raises `InvalidInput` for an unknown question.
    """
    return expected(question)


@takes("lab.measure_waits([0.5, 1, 2])")
def measure_waits(intervals: Sequence[float] = INTERVALS, *, question: str = "") -> Waits:
    """Measures how long a record waits until a reader has it, for three ways to write and each interval, in seconds.

    Takes about four times the sum of the intervals. `question`: whose prediction is drawn, too. Raises `InvalidInput`.
    """
    return measured_waits(intervals, question=question)


@takes("lab.measure_rows([1, 10, 100])")
def measure_rows(sizes: Sequence[int] = SIZES, *, rows: int = ROWS, store: str = "sqlite") -> Rates:
    """Writes the same rows in transactions of each size, and measures rows a second. `store` is one of the lab's.

    Raises `InvalidInput`, and `ServiceUnavailable` for a store whose server is not there.
    """
    return measured_rows(sizes, rows=rows, store=store)


@takes("lab.count_effects(sizes=[4, 400])")
def count_effects(*, sizes: Sequence[int] = BATCHES) -> Effects:
    """Counts files, syncs, renames and bytes of one batch of each size, sink by sink. Raises `InvalidInput`."""
    return counted_effects(sizes=sizes)


@takes("lab.try_sink(write_batch)")
def try_sink(sink: Callable[..., Any], kind: str = "table") -> "own.Tried | None":
    """Kills your sink at every statement of its batches, and says on which axis something is wrong; takes seconds.

    The store and the kill are real, the engine is simulated. `kind` is `"table"`, `"folder"`, or `"writers"`: a table
    with two writers, one of which is stopped, replaced, and continued. What survives is tried with twelve batches,
    items such as `O'Brien`, and two queries with names that are nearly alike. Numbers of rows never come again in
    another batch. Raises `InvalidInput`.
    """
    found = _own()
    return found.try_sink(sink, kind) if found else None


@takes('lab.save_sink(write_batch, "my_sink.py")')
def save_sink(sink: Callable[..., Any], file: str = "my_sink.py", kind: str = "table") -> str:
    """Writes your sink into a file, with what Spark needs around it; gives what `lab.crash_test` takes.

    `kind` is `"table"` or `"folder"`. The function must need nothing but its arguments. Raises `InvalidInput` where its
    source is not known.
    """
    if not _exercises():
        return ""
    return str(import_module("labkit.teach.own_file").save_sink(sink, file, kind))


@takes('lab.crash_test("my_sink.py:write_batch")')
def crash_test(subject: str, **options: Any) -> "own.Tested | own.Untested | None":
    """Kills a real Spark job at every durable effect of your sink, as `labkit crashtest FILE:NAME --quick` does it.

    Takes two to three minutes. `options` are those of the command line. With `only=["b0.call.returns"]` the job is
    killed at that place alone: 15 to 20 seconds, which can show that something breaks and give no guarantee. Without
    Java, and for a sink that is not written yet, a card says that nothing was tested. Raises `InvalidInput` for what
    cannot be tested.
    """
    found = _own()
    return found.crash_test(subject, options=options) if found else None


@takes("lab.memory_sink()")
def memory_sink(folder: Path | None = None, *, tell: Tell = in_place, patience: float = PATIENCE) -> list[Life]:
    """Counts the three records into Spark's memory sink without a checkpoint, kills the driver, and does it again.

    Gives for both drivers what could be read inside it, and what was left on disk after its death.
    """
    find_java()
    place = fresh_folder("memory-sink") if folder is None else folder.absolute()
    place.mkdir(parents=True)
    return [live(place, number, tell, patience) for number in (1, 2)]


@takes('lab.ask("00-rows")')
def ask(name: str) -> None:
    """Asks what you expect before a run, as `lab.ask("00-rows")`; the run goes ahead without an answer, too.

    Raises `InvalidInput` for an unknown question.
    """
    if questions := _part("labkit.teach.questions.asking"):
        questions.ask(name)


@takes('lab.answer("00-rows", outcome.verdict.rows)')
def answer(name: str, found: object = None) -> "Answer | None":
    """Your prediction beside what came, as `lab.answer("00-rows", outcome.verdict.rows)`, and why it came so.

    `found` is what the run measured: a number, a text, or a list of texts. Raises `InvalidInput` for an unknown
    question.
    """
    questions = _part("labkit.teach.questions.asking")
    return questions.answer(name, found) if questions else None


@takes('lab.check("05-recovery")')
def check(name: str, *, strict: bool | None = None) -> None:
    """Checks your answer to an exercise, as `lab.check("05-recovery")`, and opens a counterexample if there is one.

    What is checked is what is graded: your cell alone, with the parameters and what else you wrote. With `strict=True`
    or LABKIT_STRICT=1 it raises `NotPassed` where the answer is wrong or missing, so that a notebook that is run by a
    program fails. Raises `InvalidInput` for an unknown exercise.
    """
    if exercises := _exercises():
        exercises.check(name, strict=strict)


@takes('lab.hint("05-recovery")')
def hint(name: str) -> None:
    """Prints the next hint for an exercise, and how long a solution is. Raises `InvalidInput` for an unknown one."""
    if exercises := _exercises():
        exercises.hint(name)


@takes('lab.progress("05")')
def progress(notebook: str | None = None) -> None:
    """Prints how far you have come in all exercises and predictions, or in those of one notebook
    (`lab.progress("05")`).
    """
    if exercises := _exercises():
        exercises.progress(notebook)
    questions = _part("labkit.teach.questions.asking")
    if questions and (predictions := questions.listed(notebook)):
        print(f"\n{predictions}")


@takes('lab.reset("00-rows", confirm=True)')
def reset(name: str | None = None, *, confirm: bool = False) -> None:
    """Takes an exercise, or all, back to the stub, or drops a prediction; only with `confirm=True`.

    Raises `InvalidInput` for an unknown name.
    """
    questions = _part("labkit.teach.questions.asking")
    if questions and name is not None and questions.reset(name, confirm=confirm):
        return
    if exercises := _exercises():
        exercises.reset(name, confirm=confirm)


def _exercises() -> ModuleType | None:
    """The exercises, where they are."""
    found = _part("labkit.teach.exercises.check")
    if found is None:
        print("Exercises are not checked here.")
    return found


def _own() -> ModuleType | None:
    """What tries a learner's own sink, where the exercises are."""
    return import_module("labkit.teach.own") if _exercises() else None


def _part(name: str) -> ModuleType | None:
    """A part of the lab that the copy in which submissions run has not."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None


install()
