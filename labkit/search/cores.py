"""A search on several cores: one process, the leader, keeps all states, and helper processes compute their successors.

A level is the set of states with the same distance from the start. The leader sends chunks of a level to idle helpers,
and expands chunks itself while it has no result to admit. It alone decides which states are new
(`labkit.sim.explore.Search.admit`), in the order of the level. So counts, violations, traces and limits equal those of
one process, whichever helper was faster. A helper ends when its pipe closes, even if the leader was killed.

States travel as numbers, which contain a code for each value in the state. The leader assigns the codes, and forks the
helpers at the first large level, so they know the model and all codes so far; later codes come with the chunks. A state
with a value that has no code yet has no number, so a helper sends the state itself.
"""

import gc
import multiprocessing
import pickle
import signal
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Generic, NamedTuple

from labkit.core.errors import InvalidInput, JobFailed
from labkit.sim.claims import Claims
from labkit.sim.explore import MAX_STATES, Expansion, Exploration, Progress, Search, at_once, expand, explore, go_on
from labkit.sim.model import Model, StateT
from labkit.sim.packing import News, compact

MOST_CORES = 64
WIDE = 600
"""The least number of states in a level for which the leading process forks helper processes.

A smaller number would cost time, because each helper has to learn every code that is new after its fork.
"""
_NARROW = 3
"""Once helpers exist, the leader shares levels of at least `WIDE / _NARROW` states; smaller ones are faster alone."""
_PORTION = 256
"""The largest number of states in a chunk."""
_EACH = 3
"""The least number of chunks per process in a level, so that slow processes can take fewer of them."""
_AHEAD = 2
"""The largest number of unanswered chunks per helper; with two, a helper need not wait for its next chunk."""
_PATIENCE = 0.2
"""Seconds between two checks of the search's limits while only the helpers have work."""


class _Portion(NamedTuple):
    """A chunk of states for a helper process to expand. Each of `numbers` encodes one state.

    A state is encoded with a code (a number) for each of its values. `news` has the codes new to this helper.
    """

    news: Sequence[News]
    numbers: Sequence[int]
    is_last: bool
    are_often_met: bool


class Expander(Generic[StateT]):
    """Computes the successors of states in a helper process, for a search that another process leads.

    `begun` is a copy of the leading process's search at the moment when the helper started. It contains the codes
    (numbers) that encode the values in states.
    """

    def __init__(self, begun: Search[StateT]) -> None:
        self._model, self._packer = begun.model, begun.packer
        self._claims = Claims(begun.model)
        self._claims.settle(begun.claims.settled)

    def learn(self, news: Sequence[News]) -> None:
        """Store the codes in `news`: numbers that the leading process has assigned to values since the last call."""
        self._packer.read_on(news)

    def expand(self, numbers: Sequence[int], *, is_last: bool, are_often_met: bool) -> Expansion:
        """Check the properties in the states that these numbers encode, and compute the states' successors.

        `is_last` says that this is the last level of the search, so that no successors are computed. `are_often_met`
        says that the search reaches most states several times. In this case, a common successor of several of these
        states is reported only once.
        """
        claims, pack = self._claims, self._packer.pack
        states = list(map(self._packer.unpack, numbers))
        claims.meet(states)
        met = [(name, states.index(state)) for name, state in self._broken()]
        ended: list[tuple[str, int]] = []
        enabled_by_state, counts = array("H"), array("H")
        reached: list[int] = []
        unencoded: list[tuple[int, StateT]] = []
        sent = set[int]()
        expanded = expand(self._model, claims, [] if is_last else states, each_once=are_often_met)
        for place, (enabled, successors) in enumerate(expanded):
            before = len(reached)
            ended += [(name, place) for name, _ in self._broken()]
            for successor in successors:
                try:
                    number = pack(successor)
                except KeyError:
                    unencoded.append((len(reached), successor))
                    reached.append(0)
                    continue
                if number not in sent:
                    sent.add(number)
                    reached.append(number)
            enabled_by_state.append(enabled)
            counts.append(len(reached) - before)
        unreached = [claim.name for claim in claims.sometimes]
        return Expansion(met, ended, unreached, enabled_by_state, counts, compact(reached), unencoded)

    def _broken(self) -> list[tuple[str, StateT]]:
        broken, self._claims.broken = self._claims.broken, []
        return [(claim.name, state) for claim, state in broken]


@contextmanager
def on_cores(model: Model[StateT], cores: int, wide: int = WIDE) -> Iterator["SharedSearch[StateT]"]:
    """Provide, for a `with` block, a breadth-first search that runs on `cores` processes.

    A level is the set of states with the same distance from the start. The processes share the work on a level if it
    has at least `wide` states; after the first such level, a third of `wide` is enough. One process alone handles
    smaller levels. Raises `InvalidInput` unless `cores` is 1 to `MOST_CORES`.
    """
    if not 1 <= cores <= MOST_CORES:
        raise InvalidInput(f"--cores {cores}: choose 1 to {MOST_CORES}.")
    shared = SharedSearch(model, cores, wide)
    try:
        yield shared
    finally:
        for helper in shared.helpers:
            helper.pipe.close()
        for helper in shared.helpers:
            helper.process.kill()
            helper.process.join()


class Helper:
    """The leading process's record of a helper process: the pipe to it, and the chunks of states that it works on."""

    def __init__(self, pipe: "Connection[Any, Any]", process: BaseProcess) -> None:
        self.pipe, self.process = pipe, process
        self.pending: deque[int] = deque()
        """The numbers of the chunks that this helper has not answered yet, in the order of sending."""
        self.known_codes: list[int] = []
        """For each component of a state, how many codes this helper knows."""

    def send(self, portion: _Portion) -> None:
        """Send a chunk of states to the helper process. Raises `JobFailed` if the process has ended."""
        try:
            self.pipe.send_bytes(pickle.dumps(portion, -1))
        except OSError:
            raise self._died() from None

    def receive(self) -> Expansion:
        """Wait for the helper process's next result and return it. Raises `JobFailed` if the process has ended."""
        try:
            expansion: Expansion = _read(self.pipe.recv_bytes())
        except (EOFError, OSError):
            raise self._died() from None
        return expansion

    def _died(self) -> JobFailed:
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        return JobFailed(
            f"a helper of the search, process {self.process.pid}, has ended with {how}; "
            "search again. If memory ran out, use fewer --cores or a smaller --max-states."
        )


class SharedSearch(Generic[StateT]):
    """A breadth-first search of a simulator's states, in which several processes share the work on each large level."""

    def __init__(self, model: Model[StateT], cores: int, wide: int) -> None:
        self.helpers: list[Helper] = []
        self._model, self._cores, self._wide = model, cores, wide
        self._search = Search(model)
        self._selector = DefaultSelector()
        self._portions: Sequence[Sequence[int]] = ()
        self._expansions: dict[int, Expansion] = {}
        self._sent = self._admitted = 0

    def explore(self, *, max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on) -> Exploration:
        """Return the same result as `labkit.sim.explore.explore`. Raises `JobFailed` if a helper process dies."""
        if self._cores == 1:
            return explore(self._model, max_states=max_states, keep_going=keep_going)
        search = self._search = Search(self._model, max_states, keep_going)
        while search.level:
            shared = self._wide // _NARROW if self.helpers else self._wide
            if len(search.level) < shared:
                search.advance()
            else:
                self._advance()
        return search.result()

    def _advance(self) -> None:
        """Expand one level of the search with the helper processes; the result equals that of `Search.advance`."""
        search = self._search
        if not self.helpers:
            self._fork()
        level, search.level = search.level, []
        fair = 1 + len(level) // (_EACH * self._cores)
        self._portions = list(at_once(level, min(_PORTION, fair)))
        self._expansions, self._sent, self._admitted = {}, 0, 0
        while self._admitted < len(self._portions):
            self._hand_out()
            if not self._collect(0) and not self._admit() and not self._help():
                self._await()
        search.finish_level()

    def _fork(self) -> None:
        forking = multiprocessing.get_context("fork")
        self._own = Expander(self._search)
        codes, _ = self._search.packer.news([0] * self._search.packer.width)
        for _ in range(self._cores - 1):
            own, other = forking.Pipe()
            others = [own, *(helper.pipe for helper in self.helpers)]
            process = forking.Process(target=_serve, args=(self._search, other, others), daemon=True)
            # Ctrl-C waits, because Python drops a KeyboardInterrupt in a function that runs at a fork, and goes on.
            allowed = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
            other.close()
            helper = Helper(own, process)
            helper.known_codes = codes
            self.helpers.append(helper)
            self._selector.register(own, EVENT_READ, helper)

    def _hand_out(self) -> None:
        """Send chunks of states to the helpers until all are busy or no chunk is left.

        A helper gets a second chunk only when every helper has one.
        """
        for most in range(1, _AHEAD + 1):
            for helper in self.helpers:
                if len(helper.pending) < most and self._sent < len(self._portions):
                    helper.known_codes, news = self._search.packer.news(helper.known_codes)
                    helper.send(_Portion(news, *self._next()))
                    helper.pending.append(self._sent - 1)

    def _next(self) -> tuple[Sequence[int], bool, bool]:
        numbers = self._portions[self._sent]
        self._sent += 1
        search = self._search
        return compact(numbers), bool(search.stopped), search.are_often_met

    def _collect(self, seconds: float) -> bool:
        ready = self._selector.select(seconds)
        for helper in (key.data for key, _ in ready):
            self._expansions[helper.pending.popleft()] = helper.receive()
        return bool(ready)

    def _admit(self) -> bool:
        result = self._expansions.pop(self._admitted, None)
        if result is not None:
            self._search.admit(self._portions[self._admitted], result)
            self._admitted += 1
        return result is not None

    def _help(self) -> bool:
        if self._sent == len(self._portions):
            return False
        numbers, is_last, are_often_met = self._next()
        self._expansions[self._sent - 1] = self._own.expand(numbers, is_last=is_last, are_often_met=are_often_met)
        return True

    def _await(self) -> None:
        if not self._collect(_PATIENCE) and not self._search.stopped:
            self._search.must_stop()


def _serve(begun: Search[Any], pipe: "Connection[Any, Any]", others: "list[Connection[Any, Any]]") -> None:
    """Run a helper process: expand each chunk of states that arrives and send the result, until the pipe closes.

    `others` are pipes that this process does not need.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the leader handles Ctrl-C
    gc.disable()  # states are tuples and make no cycles
    for other in others:  # the leading process's ends, which the fork has copied
        other.close()
    expander = Expander(begun)
    try:
        while True:
            news, numbers, is_last, are_often_met = _read(pipe.recv_bytes())
            expander.learn(news)
            result = expander.expand(numbers, is_last=is_last, are_often_met=are_often_met)
            pipe.send_bytes(pickle.dumps(result, -1))
    except (EOFError, OSError):
        return


def _read(pickled: bytes) -> Any:
    return pickle.loads(pickled)  # noqa: S301  # only forked helpers and their parent hold the ends of these pipes
