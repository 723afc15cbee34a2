"""A search on several cores: the leader knows all states, and hands chunks of a level to idle helpers for expansion.

Wide levels are split into chunks. The helpers are forked when the first wide level arrives, so they know the
model and all codes so far; the leader sends them later codes, expands chunks itself while it has nothing to
admit, and admits results in the order of the level. So counts, violations, traces and limits equal those of one
process, whoever was faster. A helper ends when its pipe closes, whatever the leader died of.
"""

import gc
import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Generic, NamedTuple

from labkit.core.errors import InvalidInput, JobFailed
from labkit.sim.expansion import Expander
from labkit.sim.explore import MAX_STATES, Expansion, Exploration, Progress, Search, at_once, explore, go_on
from labkit.sim.model import Model, StateT
from labkit.sim.packing import News, compact

MOST_CORES = 64
WIDE = 600
"""The size of the first level that is shared. Until then the leader learns codes that every helper would have to
learn.
"""
_NARROW = 3
"""Later levels are shared from `WIDE / _NARROW` states on; a smaller level is expanded faster than it is handed out."""
_PORTION = 256
"""The size of the largest chunk; a level has at least a few chunks per process."""
_EACH = 3
"""Chunks per process for small levels, so that slow processes simply take fewer."""
_AHEAD = 2
"""Chunks queued at a helper, so that it does not wait for the next one."""
_PATIENCE = 0.2
"""Seconds between two checks of the limits while only the helpers are busy."""


class _Portion(NamedTuple):
    """The states that a helper should expand, and the codes that it does not know yet."""

    news: Sequence[News]
    numbers: Sequence[int]
    is_last: bool
    are_often_met: bool


@contextmanager
def on_cores(model: Model[StateT], cores: int, wide: int = WIDE) -> Iterator["SharedSearch[StateT]"]:
    """Provide a search for a block with this number of processes, which share levels of `wide` states or more.

    Raises `InvalidInput`.
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
    """The leader's handle on one helper process."""

    def __init__(self, pipe: "Connection[Any, Any]", process: BaseProcess) -> None:
        self.pipe, self.process = pipe, process
        self.pending: deque[int] = deque()
        """The numbers of the chunks that it has not answered yet."""
        self.known_codes: list[int] = []
        """For each part of a state, how many codes it knows."""

    def send(self, portion: _Portion) -> None:
        """Send a chunk. Raises `JobFailed` if the helper has ended."""
        try:
            self.pipe.send_bytes(pickle.dumps(portion, -1))
        except OSError:
            raise self._died() from None

    def receive(self) -> Expansion:
        """Return its next answer. Raises `JobFailed` if the helper has ended."""
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
            f"a helper of the search, process {self.process.pid}, has ended with {how}: "
            "search again; if memory ran out, use fewer --cores or a smaller --max-states."
        )


class SharedSearch(Generic[StateT]):
    """One search, and the processes that share its levels."""

    def __init__(self, model: Model[StateT], cores: int, wide: int) -> None:
        self.helpers: list[Helper] = []
        self._model, self._cores, self._wide = model, cores, wide
        self._search = Search(model)
        self._selector = DefaultSelector()
        self._portions: Sequence[Sequence[int]] = ()
        self._expansions: dict[int, Expansion] = {}
        self._sent = self._admitted = 0

    def explore(self, *, max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on) -> Exploration:
        """Visit every state, as `labkit.sim.explore.explore` does. Raises `JobFailed` if a helper dies."""
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
        """Process one level, as `Search.advance` does."""
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
        """Start the helpers. Each inherits the ends of all earlier pipes, and closes those that are not its own."""
        forking = multiprocessing.get_context("fork")
        self._own = Expander(self._search)
        codes, _ = self._search.packer.news([0] * self._search.packer.width)
        for _ in range(self._cores - 1):
            own, other = forking.Pipe()
            others = [own, *(helper.pipe for helper in self.helpers)]
            process = forking.Process(target=_serve, args=(self._search, other, others), daemon=True)
            process.start()
            other.close()
            helper = Helper(own, process)
            helper.known_codes = codes
            self.helpers.append(helper)
            self._selector.register(own, EVENT_READ, helper)

    def _hand_out(self) -> None:
        """Give each helper as much as it can take, but nobody a second chunk before everybody has one."""
        for most in range(1, _AHEAD + 1):
            for helper in self.helpers:
                if len(helper.pending) < most and self._sent < len(self._portions):
                    helper.known_codes, news = self._search.packer.news(helper.known_codes)
                    helper.send(_Portion(news, *self._next()))
                    helper.pending.append(self._sent - 1)

    def _next(self) -> tuple[Sequence[int], bool, bool]:
        """Return the next chunk of the level and how to expand it."""
        numbers = self._portions[self._sent]
        self._sent += 1
        search = self._search
        return compact(numbers), bool(search.stopped), search.are_often_met

    def _collect(self, seconds: float) -> bool:
        """Take the helpers' answers that arrive within `seconds`, and return whether there were any."""
        ready = self._selector.select(seconds)
        for helper in (key.data for key, _ in ready):
            self._expansions[helper.pending.popleft()] = helper.receive()
        return bool(ready)

    def _admit(self) -> bool:
        """Admit the next chunk if it is expanded, and return whether it was."""
        result = self._expansions.pop(self._admitted, None)
        if result is not None:
            self._search.admit(self._portions[self._admitted], result)
            self._admitted += 1
        return result is not None

    def _help(self) -> bool:
        """Expand a chunk in this process if one is left, and return whether one was."""
        if self._sent == len(self._portions):
            return False
        numbers, is_last, are_often_met = self._next()
        self._expansions[self._sent - 1] = self._own.expand(numbers, is_last=is_last, are_often_met=are_often_met)
        return True

    def _await(self) -> None:
        """Wait for a helper, and check the limits meanwhile."""
        if not self._collect(_PATIENCE) and not self._search.stopped:
            self._search.must_stop()


def _serve(begun: Search[Any], pipe: "Connection[Any, Any]", others: "list[Connection[Any, Any]]") -> None:
    """Run a helper: answer each chunk until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for whoever asked
    gc.disable()  # states are tuples and make no cycles
    for other in others:
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
    """Unpickle a value from another process of this search."""
    return pickle.loads(pickled)  # noqa: S301  # only forked helpers and their parent hold the ends of these pipes
