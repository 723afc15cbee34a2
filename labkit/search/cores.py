"""A search in several processes of this machine, each with a part of the states (`labkit.sim.shard`).

This process begins the search, and forks the searchers when a level is wide enough to be shared: they know the model,
all states so far and their numbers. They go through the levels in step, and this process hands on what they say to each
other. They find what one process finds: the same counts, violations and traces.
A searcher ends when its pipe closes, whatever this process died of. This module must not look into a state.
"""

import gc
import multiprocessing
import pickle
import signal
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Generic, NamedTuple

from labkit.core.errors import InvalidInput, JobFailed
from labkit.sim.explore import (
    MAX_STATES,
    Exploration,
    Progress,
    Search,
    Violation,
    explore,
    go_on,
    step_between,
)
from labkit.sim.model import Model, Mood, StateT
from labkit.sim.shard import Batch, Found, Shard, rank_of, ranks
from labkit.sim.walk import Trace

MOST_CORES = 64
WIDE = 150
"""States of the first level that is shared: to go through a smaller one in step takes longer than to go through it alone."""
_LONG = 20_000
"""States after which a search is shared whose levels never become wide."""
_PATIENCE = 0.2
"""Seconds between two questions whether to go on, while the searchers are busy."""


class _Level(NamedTuple):
    """What each searcher is told when a level begins: orders of all its states, and claims that are settled."""

    orders: list["array[int]"]
    settled: frozenset[str]
    is_last: bool


class _Answer(NamedTuple):
    """What a searcher answers; the batches are pickled for whoever owns their states."""

    met: list[Found]
    ended: list[Found]
    unreached: list[str]
    generated: int
    strange: Batch
    theirs: list[bytes]


@contextmanager
def on_cores(
    model: Model[StateT], cores: int, wide: int = WIDE
) -> Iterator["Searchers[StateT]"]:
    """Searchers for a block, in so many processes once a level has `wide` states. Raises `InvalidInput`."""
    if not 1 <= cores <= MOST_CORES:
        raise InvalidInput(f"--cores {cores}: choose 1 to {MOST_CORES}.")
    begun = Search(model)
    while 0 < len(begun.level) < wide and len(begun.parents) < _LONG:
        begun.advance()
    forking = multiprocessing.get_context("fork")
    ours: list[Connection[Any, Any]] = []
    processes = []
    try:
        for me in range(cores if begun.level else 0):
            mine, theirs = forking.Pipe()
            ours.append(mine)
            # A searcher gets the ends of all pipes so far, and closes those that are not its own.
            process = forking.Process(
                target=_serve, args=(begun, me, cores, theirs, list(ours)), daemon=True
            )
            process.start()
            processes.append(process)
            theirs.close()
        yield Searchers(begun, ours, processes)
    finally:
        for pipe in ours:
            pipe.close()
        for process in processes:
            process.kill()
            process.join()


def _serve(
    begun: Search[Any],
    me: int,
    cores: int,
    pipe: "Connection[Any, Any]",
    others: list["Connection[Any, Any]"],
) -> None:
    """One searcher's life: an answer to each message, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for whoever asked
    gc.disable()  # states are tuples and make no cycles
    for other in others:
        other.close()
    shard = Shard(begun, me, cores)
    try:
        while True:
            verb, said = _read(pipe.recv_bytes())
            pipe.send_bytes(pickle.dumps(_ANSWERS[verb](shard, said, pipe.poll), -1))
    except (EOFError, OSError):
        return


def _begin(shard: Shard[Any], _said: None, _poll: Callable[[], bool]) -> "array[int]":
    return shard.admit([Batch([], [], [])] * shard.of, [])


def _on_level(shard: Shard[Any], level: _Level, poll: Callable[[], bool]) -> _Answer:
    own = level.orders[shard.me]
    shard.cut(len(own))
    shard.claims.settle(level.settled)
    places = ranks(level.orders, shard.me)
    taken = shard.take(own, places, poll, is_last=level.is_last)
    return _Answer(
        taken.met,
        taken.ended,
        [claim.name for claim in shard.claims.sometimes],
        shard.generated(len(own)),
        taken.strange.shrunk(),
        [pickle.dumps(batch.shrunk(), -1) for batch in taken.theirs],
    )


def _admit(
    shard: Shard[Any],
    said: tuple[list[Batch], list[bytes]],
    _poll: Callable[[], bool],
) -> "array[int]":
    strange, batches = said
    return shard.admit(strange, map(_read, batches))


def _generated(shard: Shard[Any], states: int, _poll: Callable[[], bool]) -> int:
    return shard.generated(states)


def _stop(_shard: Shard[Any], _said: None, _poll: Callable[[], bool]) -> None:
    # The arrival says it all: a searcher that is busy sees that its pipe is not empty.
    return None


def _whence(shard: Shard[Any], number: int, _poll: Callable[[], bool]) -> Any:
    return shard.whence(number)


_ANSWERS: dict[str, Callable[[Shard[Any], Any, Callable[[], bool]], Any]] = {
    "begin": _begin,
    "level": _on_level,
    "admit": _admit,
    "generated": _generated,
    "stop": _stop,
    "whence": _whence,
}


class Searchers(Generic[StateT]):
    """A group of processes that searches one model once."""

    def __init__(
        self,
        begun: Search[StateT],
        pipes: Sequence["Connection[Any, Any]"],
        processes: Sequence["BaseProcess"],
    ) -> None:
        self.model, self.processes = begun.model, processes
        self._begun = begun
        self._pipes = pipes
        self._selector = DefaultSelector()
        for me, pipe in enumerate(pipes):
            self._selector.register(pipe, EVENT_READ, me)
        self._keep_going: Callable[[Progress], bool] = go_on
        self._progress = begun.progress
        self._is_told_to_stop = self._has_stopped = False
        self._found: list[tuple[int, Found]] = []
        self._unreached = {claim.name for claim in begun.claims.sometimes}

    def explore(
        self,
        *,
        max_states: int = MAX_STATES,
        keep_going: Callable[[Progress], bool] = go_on,
    ) -> Exploration:
        """Visits every state, as `labkit.sim.explore.explore` does. Raises `JobFailed` where a searcher dies."""
        if len(self._begun.parents) >= max_states:
            return explore(self.model, max_states=max_states, keep_going=keep_going)
        if not self._begun.level:
            return self._begun.result()
        self._keep_going = keep_going
        orders = self._ask("begin", [None] * len(self._pipes))
        stopped = ""
        while True:
            answers = self._take(orders, is_last=bool(stopped))
            unique, generated, depth = self._progress
            if stopped or self._is_told_to_stop:
                generated += sum(each.generated for each in answers)
                self._progress = Progress(unique, generated, depth)
                break
            before, orders = orders, self._admit(answers)
            if unique + sum(map(len, orders)) >= max_states:
                stopped = f"{max_states} states were reached"
                last = _last_rank(orders, max_states - unique)
                orders = [_up_to(each, last) for each in orders]
                expanded = [
                    bisect_right(ranks(before, me), last) for me in range(len(before))
                ]
                generated += sum(self._ask("generated", expanded))
            else:
                last = None
                generated += sum(each.generated for each in answers)
            self._note_ends(answers, last)
            more = sum(map(len, orders))
            self._progress = Progress(unique + more, generated, depth + bool(more))
            if not more:
                break
        return self._result("it was told to stop" if self._is_told_to_stop else stopped)

    def _take(self, orders: list["array[int]"], *, is_last: bool) -> list[_Answer]:
        settled = frozenset(found.claim for _, found in self._found)
        reached = {
            claim.name
            for claim in self.model.properties()
            if claim.mood is Mood.SOMETIMES and claim.name not in self._unreached
        }
        answers: list[_Answer] = self._ask(
            "level",
            [_Level(orders, settled | reached, is_last)] * len(orders),
        )
        met = _first(answers, lambda each: each.met)
        self._found += [
            met[claim.name] for claim in self.model.properties() if claim.name in met
        ]
        self._unreached.intersection_update(*(each.unreached for each in answers))
        return answers

    def _admit(self, answers: Sequence[_Answer]) -> list["array[int]"]:
        """Hands each searcher what the others reached of its states; the orders of its states of the next level."""
        strange = [each.strange for each in answers]
        said = [
            (strange, [each.theirs[me] for each in answers])
            for me in range(len(answers))
        ]
        orders: list[array[int]] = self._ask("admit", said)
        return orders

    def _note_ends(self, answers: Sequence[_Answer], last: int | None) -> None:
        """Keeps of each claim the first end that breaks it, as long as it is not behind the last rank that counts."""
        names = [claim.name for claim in self.model.properties()]
        ended = _first(answers, lambda each: each.ended).values()
        self._found += sorted(
            (found for found in ended if last is None or found[1].order <= last),
            key=lambda found: (found[1].order, names.index(found[1].claim)),
        )

    def _result(self, stopped: str) -> Exploration:
        claims = {claim.name: claim for claim in self.model.properties()}
        violations = list(self._begun.result().violations)
        for me, found in self._found:
            claim = claims[found.claim]
            state, trace = self._trace_to(me, found.number)
            violations.append(Violation(claim.name, claim.because(state), trace))
        return Exploration(
            self.model.name,
            self.model.values,
            *self._progress,
            stopped,
            tuple(violations),
            tuple(name for name in claims if name in self._unreached),
        )

    def _trace_to(self, me: int, number: int) -> tuple[StateT, Trace]:
        """A state and a shortest way to it, which leads from searcher to searcher."""
        steps = []
        state, before = end, _ = self._ask_one(me, "whence", number)
        while before is not None:
            parent, earlier = self._ask_one(before[0], "whence", before[1])
            steps.append(step_between(self.model, parent, state))
            state, before = parent, earlier
        return end, Trace.of(self.model, steps[::-1])

    # What is said through the pipes.

    def _ask(self, verb: str, said: Sequence[Any]) -> list[Any]:
        """Tells each searcher something, and waits for all answers; asks meanwhile whether to go on."""
        for me, each in enumerate(said):
            self._send(me, verb, each)
        answers: dict[int, Any] = {}
        while len(answers) < len(self._pipes):
            ready = self._selector.select(_PATIENCE)
            for me in (key.data for key, _ in ready if key.data not in answers):
                answers[me] = self._receive(me)
            is_time = not ready or len(answers) == len(self._pipes)
            if (
                is_time
                and not self._is_told_to_stop
                and not self._keep_going(self._progress)
            ):
                self._is_told_to_stop = True
                # Whoever is busy sees that something has come, stops, and answers both.
                for me in range(len(self._pipes)):
                    self._send(me, "stop", None)
        if self._is_told_to_stop and not self._has_stopped:
            self._has_stopped = True
            for me in range(len(self._pipes)):
                self._receive(me)
        return [answers[me] for me in range(len(self._pipes))]

    def _ask_one(self, me: int, verb: str, said: Any) -> Any:
        self._send(me, verb, said)
        return self._receive(me)

    def _send(self, me: int, verb: str, said: Any) -> None:
        try:
            self._pipes[me].send_bytes(pickle.dumps((verb, said), -1))
        except OSError:
            raise self._died(me) from None

    def _receive(self, me: int) -> Any:
        try:
            return _read(self._pipes[me].recv_bytes())
        except (EOFError, OSError):
            raise self._died(me) from None

    def _died(self, me: int) -> JobFailed:
        process = self.processes[me]
        process.join(_PATIENCE)
        code = process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        return JobFailed(
            f"a searcher, process {process.pid}, has ended with {how}, and its states are gone: "
            "search again, with fewer --cores or --max-states if it was memory that ran out."
        )


def _read(pickled: bytes) -> Any:
    """What another process of this search has pickled."""
    return pickle.loads(pickled)  # noqa: S301  # only forked searchers and their parent hold the ends of these pipes


def _last_rank(orders: Sequence["array[int]"], missing: int) -> int:
    """The rank of the state whose expansion brought so many new states that none is missing any more."""
    return rank_of(sorted(chain(*orders))[missing - 1]) if missing > 0 else 0


def _up_to(orders: "array[int]", last: int) -> "array[int]":
    return orders[: bisect_right(orders, last, key=rank_of)]


def _first(
    answers: Sequence[_Answer], of: Callable[[_Answer], list[Found]]
) -> dict[str, tuple[int, Found]]:
    """Of each claim that somebody saw broken the first state, with its searcher."""
    first: dict[str, tuple[int, Found]] = {}
    for me, each in enumerate(answers):
        for found in of(each):
            known = first.get(found.claim)
            if known is None or found.order < known[1].order:
                first[found.claim] = (me, found)
    return first
