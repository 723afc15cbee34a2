"""Run the simulators of a page without a Jupyter kernel: several players share one Python in a worker of the browser.

The page's worker calls `Players.answer` with JSON and passes the answers on. This Python needs only the standard
library and `labkit.core`, `labkit.sim` and `labkit.view`, which `make site` packs into one file.
"""

import json
from collections.abc import Mapping
from typing import Any

from labkit.core.errors import LabError
from labkit.sim.trace import parse
from labkit.view.presenter import Presenter
from labkit.view.session import Session


class Players:
    """All players of one web page, by name. A player shows a run, through which a reader steps."""

    def __init__(self) -> None:
        self._presenters: dict[str, Presenter] = {}
        self._answers: list[dict[str, object]] = []

    def answer(self, text: str) -> str:
        """Carry out one message of the web page, and return a list of answers; both are JSON.

        The message `start` opens a player, which shows a trace step by step. Its fields are the trace to show, the
        step, a hint about what to watch, the tasks that the reader has done, and a second trace to show next to the
        first. Its one answer has all that the page needs to draw the player. If the message is wrong, the answer is an
        error message, and nothing changes.
        """
        message = json.loads(text)
        self._answers.clear()
        if "start" in message:
            self._start(str(message["player"]), message["start"])
        elif "again" in message["message"]:
            self._answers.append({"shown": self._presenters[message["player"]].everything()})
        else:
            self._presenters[message["player"]].handle(message["message"])
        return json.dumps(self._answers, ensure_ascii=False, separators=(",", ":"))

    def _start(self, player: str, start: Mapping[str, Any]) -> None:
        try:
            session = Session(parse(str(start["trace"])), str(start["watch"]))
            if start["beside"]:
                session.compare(parse(str(start["beside"])))
            session.go(int(start["at"]))
        except LabError as error:
            self._answers.append({"refused": str(error)})
            return
        self._presenters[player] = Presenter(session, self._answers.append, map(str, start["done"]))
        self._answers.append({"shown": self._presenters[player].everything()})
