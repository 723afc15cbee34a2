"""A search on several cores: this process knows all states and hands others some to expand, whoever is free.

A level that is wide is cut into portions. The helpers were forked when the first such level came, so they know the
model and all numbers so far; this process tells them the codes that it has given since, expands portions itself while
it has nothing to admit, and admits what was found in the order of the level. So counts, violations, traces and the cut
of a limit are those of one process, whoever was faster. A helper ends when its pipe closes, whatever this process died
of.
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
"""States of the first level that is shared. Until then this process learns what every other one would learn for itself.
"""
_NARROW = 3
"""What part of a level that wide a later one must have: to hand out a smaller one takes longer than to go through it.
"""
_PORTION = 256
"""States of the largest portion; a level has at least a few portions for each process."""
_EACH = 3
"""Portions of a level that is not larger, for each process: whoever is slow takes fewer."""
_AHEAD = 2
"""Portions that a helper has at most, so that it need not wait for the next one."""
_PATIENCE = 0.2
"""Seconds between two questions whether to go on, while only the helpers are busy."""


class _Portion(NamedTuple):
    """States that a helper is to expand, and the codes that it does not know yet."""

    news: Sequence[News]
    numbers: Sequence[int]
    is_last: bool
    are_often_met: bool


@contextmanager
def on_cores(model: Model[StateT], cores: int, wide: int = WIDE) -> Iterator["SharedSearch[StateT]"]:
    """A search for a block by so many processes, which share levels from one with `wide` states on.

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
    """A process that expands portions, as this process sees it."""

    def __init__(self, pipe: "Connection[Any, Any]", process: BaseProcess) -> None:
        self.pipe, self.process = pipe, process
        self.given: deque[int] = deque()
        """The numbers of the portions that it has not answered."""
        self.told: list[int] = []
        """How many values of each part of a state it knows the codes of."""

    def send(self, portion: _Portion) -> None:
        """Hands over a portion. Raises `JobFailed` if the helper has ended."""
        try:
            self.pipe.send_bytes(pickle.dumps(portion, -1))
        except OSError:
            raise self._died() from None

    def receive(self) -> Expansion:
        """Its next answer. Raises `JobFailed` if the helper has ended."""
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
            "search again, with fewer --cores or --max-states if it was memory that ran out."
        )


class SharedSearch(Generic[StateT]):
    """One search, and the processes that share its levels."""

    def __init__(self, model: Model[StateT], cores: int, wide: int) -> None:
        self.helpers: list[Helper] = []
        self._model, self._cores, self._wide = model, cores, wide
        self._search = Search(model)
        self._selector = DefaultSelector()
        self._portions: Sequence[Sequence[int]] = ()
        self._found: dict[int, Expansion] = {}
        self._given = self._admitted = 0

    def explore(self, *, max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on) -> Exploration:
        """Visits every state, as `labkit.sim.explore.explore` does. Raises `JobFailed` where a helper dies."""
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
        """Goes through one level, as `Search.advance` does."""
        search = self._search
        if not self.helpers:
            self._fork()
        level, search.level = search.level, []
        fair = 1 + len(level) // (_EACH * self._cores)
        self._portions = list(at_once(level, min(_PORTION, fair)))
        self._found, self._given, self._admitted = {}, 0, 0
        while self._admitted < len(self._portions):
            self._hand_out()
            if not self._collect(0) and not self._admit() and not self._help():
                self._await()
        search.finish_level()

    def _fork(self) -> None:
        """Starts the helpers. Each gets the ends of all pipes so far, and closes those that are not its own."""
        forking = multiprocessing.get_context("fork")
        self._own = Expander(self._search)
        known, _ = self._search.packer.news([0] * self._search.packer.width)
        for _ in range(self._cores - 1):
            mine, theirs = forking.Pipe()
            others = [mine, *(helper.pipe for helper in self.helpers)]
            process = forking.Process(target=_serve, args=(self._search, theirs, others), daemon=True)
            process.start()
            theirs.close()
            helper = Helper(mine, process)
            helper.told = known
            self.helpers.append(helper)
            self._selector.register(mine, EVENT_READ, helper)

    def _hand_out(self) -> None:
        """Gives each helper what it can take; nobody gets a second portion before each has one."""
        for most in range(1, _AHEAD + 1):
            for helper in self.helpers:
                if len(helper.given) < most and self._given < len(self._portions):
                    helper.told, news = self._search.packer.news(helper.told)
                    helper.send(_Portion(news, *self._next()))
                    helper.given.append(self._given - 1)

    def _next(self) -> tuple[Sequence[int], bool, bool]:
        """The next portion of the level, and how it is to be expanded."""
        numbers = self._portions[self._given]
        self._given += 1
        search = self._search
        return compact(numbers), bool(search.stopped), search.are_often_met

    def _collect(self, seconds: float) -> bool:
        """Takes what helpers have answered within so many seconds; whether there was anything."""
        ready = self._selector.select(seconds)
        for helper in (key.data for key, _ in ready):
            self._found[helper.given.popleft()] = helper.receive()
        return bool(ready)

    def _admit(self) -> bool:
        """Admits the next portion, if it was expanded; whether it was."""
        found = self._found.pop(self._admitted, None)
        if found is not None:
            self._search.admit(self._portions[self._admitted], found)
            self._admitted += 1
        return found is not None

    def _help(self) -> bool:
        """Expands a portion in this process, if one is left; whether one was."""
        if self._given == len(self._portions):
            return False
        numbers, is_last, are_often_met = self._next()
        self._found[self._given - 1] = self._own.expand(numbers, is_last=is_last, are_often_met=are_often_met)
        return True

    def _await(self) -> None:
        """Waits for a helper, and asks meanwhile whether to go on."""
        if not self._collect(_PATIENCE) and not self._search.stopped:
            self._search.must_stop()


def _serve(begun: Search[Any], pipe: "Connection[Any, Any]", others: "list[Connection[Any, Any]]") -> None:
    """A helper's life: an answer to each portion, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for whoever asked
    gc.disable()  # states are tuples and make no cycles
    for other in others:
        other.close()
    expander = Expander(begun)
    try:
        while True:
            news, numbers, is_last, are_often_met = _read(pipe.recv_bytes())
            expander.learn(news)
            found = expander.expand(numbers, is_last=is_last, are_often_met=are_often_met)
            pipe.send_bytes(pickle.dumps(found, -1))
    except (EOFError, OSError):
        return


def _read(pickled: bytes) -> Any:
    """What another process of this search has pickled."""
    return pickle.loads(pickled)  # noqa: S301  # only forked helpers and their parent hold the ends of these pipes
