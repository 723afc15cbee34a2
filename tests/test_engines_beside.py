"""Engines beside each other: the picture says what records say, and a kill here gives what was recorded."""

import pytest
from cells import cells

from labkit import lab
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.teach import engine_kills
from labkit.teach import engines as beside
from labkit.teach.engine_pipelines import pipelines
from labkit.teach.hands_on import stopped
from labkit.view.lanes import Lane, Stage, picture, text

LANES = """\
Spark, foreachBatch appends: plan > rows, unseen > rows > cleaning > [done]
Spark, Delta with txnVersion: plan > rows, unseen > rows + batch id > [done]
Flink, file sink: rows, unseen > [done] > rows
Kafka, offsets afterwards: rows > [offsets]
Kafka, offsets in transaction: [rows + offsets]"""


def test_each_lane_has_the_order_of_its_cell() -> None:
    assert str(lab.engines()) == LANES
    written = cells("engine")
    for engine in beside.ENGINES.values():
        assert beside._orders_of(engine).order == written[engine.pipeline].design.steps


def test_each_is_killed_where_it_was_measured_and_left_as_recorded() -> None:
    """The place is the telling one of the pipeline, or one that was killed by hand, with the same guarantee."""
    for engine in beside.ENGINES.values():
        pipeline, cell = (pipelines()[engine.pipeline], cells("engine")[engine.pipeline])
        known = dict.fromkeys(pipeline.shown_by, pipeline.guarantee) | cell.measured
        assert known[engine.place] == pipeline.guarantee
        assert (engine.rows > beside.DUE) == (pipeline.guarantee == "at-least-once")
        number, _ = beside._orders_of(engine).place(engine.place) or (0, 0)
        assert number == 2


def test_the_picture_says_where_it_was_killed_only_when_asked() -> None:
    assert "\u2717" not in str(lab.engines())
    shown = str(lab.engines("flink", "transaction", killed=True))
    assert shown == (
        "Flink, file sink: rows, unseen > [done] > \u2717 rows\nKafka, offsets in transaction: \u2717 [rows + offsets]"
    )
    assert lab.engines(killed=True).html().count(">killed<") == 5
    assert lab.engines().html().count(">killed<") == 0


def test_a_lane_is_drawn_with_its_words_escaped() -> None:
    lane = Lane("<b>", "x", [Stage("rows & more", "a" * 90, decides=True)], 0, "none")
    drawn = picture([lane], "t")
    assert "<b>" not in drawn
    assert "\u2026aaa" in drawn
    assert text([lane]) == "<b>: \u2717 [rows & more]  none"


def test_an_unknown_engine_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="there is no engine 'flnk'"):
        lab.kill_engines("flnk")


def test_what_is_not_run_here_says_so() -> None:
    killed = lab.kill_engines("spark", "flink")
    assert [each.because for each in killed.kills] == 2 * [beside.RECORDED]
    assert killed.doubled == ["spark"]
    assert str(killed).count("recorded") == 2
    assert beside.RECORDED.split(":")[0] in killed._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("error", [ServiceUnavailable, JobFailed])
def test_without_kafka_the_recorded_result_is_shown(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise error("there is no Kafka.")

    monkeypatch.setattr(beside, "_killed", refuse)
    (found,) = lab.kill_engines("consumer").kills
    assert found.because == "Recorded, not run here: there is no Kafka."
    assert (found.guarantee, found.rows) == ("at-least-once", 12)


@pytest.mark.slow
@pytest.mark.usefixtures("java", "kafka_address", "watched_calls")
def test_a_kill_here_gives_what_was_recorded() -> None:
    for each in lab.kill_engines("consumer", "transaction").kills:
        engine = beside.ENGINES[each.name]
        assert each == beside.Kill(each.name, engine.rows, pipelines()[engine.pipeline].guarantee, "")


@pytest.mark.slow
@pytest.mark.usefixtures("java", "kafka_address", "watched_calls")
def test_a_place_that_is_never_reached_proves_nothing() -> None:
    there = pipelines()["kafka_consumer"]
    missed = r"kafka_consumer did not reach the write send \S+ OffsetCommit #9"
    with engine_kills.broker() as variables, pytest.raises(JobFailed, match=missed):
        engine_kills.kill(there, "send <kafka> OffsetCommit #9", variables)


@pytest.mark.slow
def test_a_stopped_writer_doubles_where_nobody_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise ServiceUnavailable("there is no Kafka.")

    monkeypatch.setattr(stopped, "kafka", refuse)
    found = lab.stopped_writers()
    assert [(each.twice, each.first) for each in found.writers] == [(3, "written"), (3, "written"), (0, "refused")]
    assert found.missing == "Kafka is left out: there is no Kafka."


@pytest.mark.slow
@pytest.mark.usefixtures("java", "kafka_address")
def test_kafka_refuses_the_old_writer() -> None:
    *_, kafka = lab.stopped_writers().writers
    assert (kafka.name, kafka.twice, kafka.first, kafka.second) == (stopped.NAMES["topic"], 0, "refused", "written")


def test_a_writer_that_ends_too_early_is_told() -> None:
    with pytest.raises(JobFailed, match="a writer process ended"):
        stopped._stopped("file", "/no/such/folder/rows")
