"""The table of events itself: what a driver may say in which order, and what is refused, with its state."""

from typing import get_args

import msgspec
import pytest

from labkit.host.processes import events, wire
from labkit.host.processes.events import (
    AnyEvent,
    Application,
    AwaitsKill,
    Begun,
    Died,
    DriverFailed,
    Ended,
    ExecutorKilled,
    Failed,
    Idle,
    Killed,
    Parked,
    Proof,
    QueryEvent,
    Ready,
    Recovered,
    SessionUp,
    Started,
    Stopped,
    Struck,
    Unwanted,
)
from labkit.host.processes.protocol import (
    DRIVER,
    OF_THE_SUPERVISOR,
    QUERY,
    Conversation,
    DriverState,
    ProtocolError,
    QueryState,
)
from labkit.runs.progress import words

PROOF = Proof(session=1, signal=9, killed=[1], left=[], begun=0.0)
STARTED, KILLED = Started(1), Killed(PROOF)
FAILED = Failed("a", "no", 1)
KILLED_EXECUTOR = ExecutorKilled("a", 7, [7], [], 0.0)
BEGUN, RECOVERED, PARKED, ENDED = (Begun("a"), Recovered("a", []), Parked("a"), Ended("a"))
UP = [STARTED, SessionUp()]
WARM = [STARTED, Ready()]

LEGAL: dict[str, list[AnyEvent]] = {
    "a crash": [*UP, BEGUN, RECOVERED, PARKED, AwaitsKill(), KILLED],
    "a crash in recovery": [*UP, BEGUN, PARKED, AwaitsKill(), KILLED],
    "a run to its end": [*UP, BEGUN, RECOVERED, ENDED, AwaitsKill(), KILLED],
    "a query that cannot be opened": [*UP, BEGUN, FAILED, AwaitsKill(), KILLED],
    "two queries": [*UP, BEGUN, Begun("b"), Recovered("b", []), PARKED, Ended("b"), AwaitsKill(), KILLED],
    "an executor": [
        STARTED,
        Application("app"),
        SessionUp(),
        BEGUN,
        RECOVERED,
        Struck("a", 7),
        KILLED_EXECUTOR,
        ENDED,
        AwaitsKill(),
        KILLED,
    ],
    "an executor that was none": [*UP, BEGUN, RECOVERED, Struck("a", 7), FAILED, ENDED, AwaitsKill(), KILLED],
    "a standby": [*UP, Ready(), BEGUN, RECOVERED, ENDED, AwaitsKill(), KILLED],
    "an archive": [STARTED, AwaitsKill(), KILLED],
    "a sink under test, twice": [*WARM, BEGUN, FAILED, Idle([]), BEGUN, ENDED, Idle([])],
    "a driver that stops itself": [*WARM, BEGUN, Stopped(), Stopped(), ENDED, Idle([])],
    "no Java": [STARTED, DriverFailed("no Java", 69), KILLED],
    "a death": [*UP, BEGUN, Died(PROOF)],
    "let go": [STARTED, Unwanted(PROOF)],
    "let go while it is killed": [STARTED, AwaitsKill(), Unwanted(PROOF)],
}


@pytest.mark.parametrize("said", LEGAL.values(), ids=LEGAL.keys())
def test_what_happens_is_accepted(said: list[AnyEvent]):
    conversation = Conversation()
    piece = b"".join(map(wire.encode, said))
    middle = len(piece) // 2
    heard = [*conversation.read(piece[:middle]), *conversation.read(piece[middle:])]
    assert heard == said


ILLEGAL: dict[str, tuple[list[AnyEvent], str]] = {
    "a driver before its start": ([SessionUp()], "driver is not started"),
    "a query before the session": ([STARTED, BEGUN], "driver is starting"),
    "a query that never began": ([*WARM, PARKED], "query a is not begun"),
    "a query that begins twice": ([*WARM, BEGUN, BEGUN], "query a is opening"),
    "a parked query that ends": ([*WARM, BEGUN, PARKED, ENDED], "query a is waiting at its failpoint"),
    "a query that ends twice": ([*WARM, BEGUN, ENDED, ENDED], "query a is over"),
    "a query that parks behind its end": ([*WARM, BEGUN, ENDED, PARKED], "a is over"),
    "recovery twice": ([*WARM, BEGUN, RECOVERED, RECOVERED], "query a is running"),
    "a kill under a running query": ([*WARM, BEGUN, RECOVERED, AwaitsKill()], "query a is running"),
    "idle beside a parked query": ([*WARM, BEGUN, PARKED, Idle([])], "a is waiting at its failpoint"),
    "a kill that nobody awaits": ([*WARM, KILLED], "driver is at work"),
    "a query behind the wish for death": ([*UP, AwaitsKill(), BEGUN], "driver is waiting for its kill"),
    "an executor that nobody pointed out": ([*WARM, BEGUN, RECOVERED, KILLED_EXECUTOR], "query a is running"),
    "an end while an executor is to die": (
        [*WARM, BEGUN, RECOVERED, Struck("a", 7), ENDED],
        "query a is waiting for the kill of an executor",
    ),
    "life after death": ([STARTED, Died(PROOF), SessionUp()], "driver is dead"),
    "a second death": ([STARTED, Died(PROOF), Died(PROOF)], "driver is dead"),
    "a start in the middle": ([*WARM, STARTED], "driver is at work"),
}


@pytest.mark.parametrize(("said", "state"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_what_is_out_of_order_is_refused_with_event_and_state(said: list[AnyEvent], state: str):
    conversation = Conversation()
    for event in said[:-1]:
        conversation.take(event)
    before = (conversation.state, dict(conversation.queries))
    with pytest.raises(ProtocolError, match="the result would be unreliable") as refused:
        conversation.take(said[-1])
    tag = type(said[-1]).__struct_config__.tag
    assert f"the event {tag!r} is out of order while the " in str(refused.value)
    assert state in str(refused.value)
    assert (conversation.state, conversation.queries) == before


@pytest.mark.parametrize(
    "line",
    [
        b"Traceback (most recent call last)",
        b"{}",
        b'{"event": "parked"}',
        b'{"event": "parked", "query": 1}',
        b'{"event": "parked", "query": "a", "more": 1}',
        b'{"event": "unheard"}',
        b"\xff",
    ],
)
def test_what_is_unreadable_is_refused_with_its_state(line: bytes):
    conversation = Conversation()
    for event in [*WARM, BEGUN]:
        conversation.take(event)
    with pytest.raises(ProtocolError, match=r"cannot be decoded .* while the driver is at work"):
        list(conversation.read(line + b"\n"))


@pytest.mark.parametrize("kind", sorted(OF_THE_SUPERVISOR, key=str))
def test_a_driver_does_not_speak_for_its_supervisor(kind: type[events.Event]):
    conversation = Conversation(forbidden=OF_THE_SUPERVISOR)
    said = {type(each): each for each in (*SAID, STARTED)}[kind]
    with pytest.raises(ProtocolError, match="is out of order"):
        list(conversation.read(wire.encode(said)))


SAID: list[AnyEvent] = [
    *(event for sequence in LEGAL.values() for event in sequence),
    events.DriverStarts(),
    events.StandbyStarts(),
    events.Waits(3),
]


def test_a_supervisor_that_ends_without_a_proof_is_refused():
    conversation = Conversation()
    for event in UP:
        conversation.take(event)
    with pytest.raises(ProtocolError, match="without a report while the driver was up"):
        conversation.finish()
    conversation.take(Died(PROOF))
    conversation.finish()


def test_every_event_is_in_the_tables_and_has_words():
    every = set(get_args(AnyEvent))
    assert {type(event) for event in SAID} == every, "an event that no test says"
    told_only = {events.DriverStarts, events.StandbyStarts, events.Waits}
    in_tables = {kind for row in DRIVER.values() for kind in row}
    assert in_tables == every - told_only
    of_queries = {kind for row in QUERY.values() for kind in row}
    assert of_queries == {kind for kind in every if issubclass(kind, QueryEvent)}
    assert (set(DRIVER), set(QUERY)) == (set(DriverState), set(QueryState))
    assert all(words(event).strip() for event in SAID)
    one_of_each = {type(event): event for event in SAID}.values()
    assert len({words(event) for event in one_of_each}) == len(every)


def test_an_event_arrives_whatever_it_quotes():
    said = Failed("a", "no file b\udcff.py\n", 1)
    conversation = Conversation()
    for event in [*WARM, BEGUN]:
        conversation.take(event)
    [heard] = conversation.read(wire.encode(said))
    assert heard == Failed("a", "no file b?.py\n", 1)


def test_an_event_is_one_line_on_the_wire():
    for event in SAID:
        line = wire.encode(event)
        assert line.count(b"\n") == 1
        assert msgspec.json.decode(line, type=AnyEvent) == event
