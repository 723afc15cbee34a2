"""The live shell: the player as an anywidget, where Python hears which action a learner chooses.

The same ESM module as in a page; every choice goes to a `Session`, and what comes back is a whole story. This module
must not decide what is possible: the session asks the model.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from labkit.errors import LabError
from labkit.view.session import Session
from labkit.view.story import FAULT_KEYS, KEYS_SAID, LIVE_KEYS_SAID, Story, first_difference

_STATIC = Path(__file__).parent / "static"


class Explorer(anywidget.AnyWidget):
    """A model that a learner steers. `session` has the same in Python; both stay in step."""

    _esm = _STATIC / "stepper.js"
    _css = "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in ("scene.css", "stepper.css"))
    shown = traitlets.Dict().tag(sync=True)
    fault_keys = traitlets.Dict({key: event.value for key, event in FAULT_KEYS.items()}).tag(sync=True)
    scenarios = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.scenarios = session.scenarios
        self._show("")
        self.on_msg(lambda _widget, message, _buffers: self.hear(message))

    def do(self, action: str) -> None:
        """Takes an enabled action, as a click on it does. Raises `InvalidAction`."""
        self.session.do(action)
        self._show("")

    def go(self, step: int) -> None:
        """Looks at another step. Raises `InvalidAction`."""
        self.session.go(step)
        self._show("")

    def undo(self) -> None:
        """Takes the last choice back. Raises `InvalidAction`."""
        self.session.undo()
        self._show("")

    def redo(self) -> None:
        """Takes the last undo back. Raises `InvalidAction`."""
        self.session.redo()
        self._show("")

    @property
    def trace(self) -> str:
        """The whole run as text that `labkit.lab.show` takes."""
        return str(self.session.trace)

    def hear(self, message: Mapping[str, Any]) -> None:
        """What the browser asked for; whatever cannot be is answered with its sentence."""
        try:
            notice = self._obey(message)
        except LabError as error:
            notice = str(error)
        self._show(notice)

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

    def _show(self, notice: str) -> None:
        session = self.session
        differs = session.differs_at
        told: dict[str, Any] = {"story": _told(session.story, differs), "at": session.at, "notice": notice}
        if session.kept:
            told |= {"beside": _told(session.kept, differs), "said": _said(session.story, session.kept)}
        self.shown = told

    def __str__(self) -> str:
        return "\n".join(self.session.story.lines())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = str(self)
        return bundle


def _told(story: Story, differs_at: int) -> dict[str, Any]:
    return {**story.to_json(differs_at), "keys": [list(pair) for pair in (*KEYS_SAID, *LIVE_KEYS_SAID)]}


def _said(story: Story, kept: Story) -> str:
    step = first_difference(story, kept)
    return (
        f"The first difference from the kept run is in step {step}." if step else "No difference from the kept run yet."
    )
