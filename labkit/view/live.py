"""Show a simulator in a notebook in which a learner chooses each next action by clicks.

It is an anywidget with the same ESM module as a page's player. Every choice goes to a `Session`, which asks the
simulator whether it is possible, and the answer contains only the changes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from labkit.core.errors import LabError
from labkit.view.narration import FAULT_KEYS, KEY_HELP, LIVE_KEY_HELP, Story, first_difference
from labkit.view.session import Session
from labkit.view.stepper import page_of
from labkit.view.updates import StoryUpdates

_STATIC = Path(__file__).parent / "static"
_KEYS = [list(pair) for pair in (*KEY_HELP, *LIVE_KEY_HELP)]


class Explorer(anywidget.AnyWidget):
    """A simulator that a learner steers by clicks; `session` offers the same in Python, and both show the same run.

    A view that opens requests the whole state (`shown`); after that it receives the changes of each choice. A version
    number tells a view whether it missed a message; then it requests the whole state again.
    """

    _esm = _STATIC / "stepper.js"
    _css = "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in ("scene.css", "stepper.css"))
    shown = traitlets.Dict().tag(sync=True, to_json=lambda _empty, explorer: explorer.everything())
    fault_keys = traitlets.Dict({key: event.value for key, event in FAULT_KEYS.items()}).tag(sync=True)
    scenarios = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session) -> None:
        self.session = session
        self._telling = StoryUpdates(session.story)
        self._version = 0
        self._notice = ""
        self._beside: tuple[Story | None, int] = None, 0
        super().__init__()
        self.scenarios = session.scenarios
        self.on_msg(lambda _widget, message, _buffers: self.handle(message))

    def do(self, action: str) -> None:
        """Take a possible action, as a click on it does. Raises `InvalidAction` if it is impossible now."""
        self.session.do(action)
        self._tell("")

    def go(self, step: int) -> None:
        """Go to step `step` of the run. Raises `InvalidAction` if there is no such step."""
        self.session.go(step)
        self._tell("")

    def undo(self) -> None:
        """Undo the last choice. Raises `InvalidAction` if there is none."""
        self.session.undo()
        self._tell("")

    def redo(self) -> None:
        """Repeat the last choice that was undone. Raises `InvalidAction` if there is none."""
        self.session.redo()
        self._tell("")

    @property
    def trace(self) -> str:
        """The run so far as text, to pass to `labkit.lab.show`."""
        return str(self.session.trace)

    def handle(self, message: Mapping[str, Any]) -> None:
        """Handle a message of the browser, such as a click; send the sentence of an error as the answer."""
        if "again" in message:
            self.send_state("shown")
            return
        try:
            notice = self._obey(message)
        except LabError as error:
            notice = str(error)
        self._tell(notice)

    def _obey(self, message: Mapping[str, Any]) -> str:
        session = self.session
        if "do" in message:
            session.do(str(message["do"]), int(message["at"]))
        elif "undo" in message:
            session.undo()
        elif "redo" in message:
            session.redo()
        elif "scenario" in message:
            session.scenario(str(message["scenario"]))
        elif "open" in message:
            session.open(str(message["open"]))
            self.scenarios = session.scenarios
        elif "keep" in message:
            session.go(int(message["keep"]))
            session.keep(session.at)
            return "This run is kept beside the next one." if session.kept else "The other run is put away."
        return ""

    def everything(self) -> dict[str, object]:
        """Return the whole state that a view in the browser shows, as plain data."""
        session, telling = self.session, self._now()
        self._version += telling.is_behind  # somebody steered the session itself: other views must ask as well
        update = {"story": {**telling.whole(session.differs_at), "keys": _KEYS}, **self._around()}
        return {**update, **self._compared(), "version": self._version}

    def _tell(self, notice: str) -> None:
        """Send the changes since the last message to all views."""
        session, base = self.session, self._version
        self._notice = notice
        self._version += 1
        news = self._now().news(session.differs_at)
        if "whole" in news:
            news["whole"]["keys"] = _KEYS
        message = {"base": base, "version": self._version, "story": news, **self._around()}
        compared = session.kept, session.differs_at
        if compared != self._beside:
            message |= self._compared()
            self._beside = compared
        self.send(message)

    def _now(self) -> StoryUpdates:
        """Return the object that computes the changes for the views; for another simulator, a new one."""
        if self._telling.story is not self.session.story:
            self._telling = StoryUpdates(self.session.story, self._telling.generation + 1)
        return self._telling

    def _around(self) -> dict[str, object]:
        return {"at": self.session.at, "notice": self._notice}

    def _compared(self) -> dict[str, object]:
        session = self.session
        if session.kept is None:
            return {"beside": None, "said": ""}
        beside = {**StoryUpdates(session.kept).whole(session.differs_at), "keys": _KEYS}
        return {"beside": beside, "said": _difference(session.story, session.kept)}

    def __str__(self) -> str:
        return "\n".join(self.session.story.lines())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = str(self)
            data["text/html"] = page_of(self.session.story)
        return bundle


def _difference(story: Story, kept: Story) -> str:
    step = first_difference(story, kept)
    return (
        f"The first difference from the kept run is in step {step}." if step else "No difference from the kept run yet."
    )
