"""Show a simulator in a notebook in which a learner chooses each next action by clicks.

It is an anywidget with the same ESM module as a page's player. Every choice goes to a `Session`, which asks the
simulator whether it is possible, and the answer contains only the changes.
"""

from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from labkit.view.assets import asset
from labkit.view.form import with_page
from labkit.view.presenter import Presenter
from labkit.view.session import Session
from labkit.view.stepper import page_of


class Explorer(anywidget.AnyWidget):
    """A widget in which a learner chooses each action of a simulator.

    A view in the browser receives all data when it opens, and afterwards only the changes.
    """

    _esm = asset("stepper.js")
    _css = "\n".join(map(asset, ("scene.css", "stepper.css")))
    shown = traitlets.Dict().tag(sync=True, to_json=lambda _empty, explorer: explorer.everything())

    def __init__(self, session: Session) -> None:
        self.session = session
        self._presenter = Presenter(session, lambda message: self.send(message))  # noqa: PLW0108  # a test may replace `send`
        super().__init__()
        self.on_msg(lambda _widget, message, _buffers: self.handle(message))

    def do(self, action: str) -> None:
        """Take an action of the simulator, as a click does. Raises `InvalidAction` if the action is impossible now."""
        self._presenter.tell(self._presenter.do(action))

    def go(self, step: int) -> None:
        """Show the state after step `step` of the run. Raises `InvalidAction` if there is no such step."""
        self.session.go(step)
        self._presenter.tell("")

    def undo(self) -> None:
        """Undo the last change of the run: an action, new parameters, or the opening of another run.

        Raises `InvalidAction` if there is nothing to undo.
        """
        self.session.undo()
        self._presenter.tell("")

    def redo(self) -> None:
        """Make the most recently undone change again. Raises `InvalidAction` if no change was undone."""
        self.session.redo()
        self._presenter.tell("")

    @property
    def trace(self) -> str:
        """The run so far as text, which `labkit.lab.show` accepts."""
        return str(self.session.trace)

    def handle(self, message: Mapping[str, Any]) -> None:
        """Handle a message from the browser, such as a click, and send back the answer or an error message."""
        if "again" in message:
            self.send_state("shown")
        else:
            self._presenter.handle(message)

    def everything(self) -> dict[str, object]:
        """Return everything that a view in the browser shows, as JSON-compatible data."""
        return self._presenter.everything()

    def __str__(self) -> str:
        return "\n".join(self.session.story.lines())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return with_page(super()._repr_mimebundle_(**options), str(self), page_of(self.session.story))
