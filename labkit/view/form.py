"""Show the crash panel in a notebook: an anywidget that displays data from Python and reports clicks."""

from collections.abc import Callable, Mapping
from pathlib import Path

import anywidget
import traitlets

_STATIC = Path(__file__).parent / "static"

Heard = Callable[[Mapping[str, object]], None]
"""A callback for messages of the browser: `choose` and `value`, `run`, `cancel`, or `hello` when a view has opened."""


class Form(anywidget.AnyWidget):
    """The widget of the crash panel, in which a user chooses where to kill a job; it displays the data in `shown`."""

    _esm = _STATIC / "panel.js"
    _css = "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in ("scene.css", "stepper.css", "panel.css"))
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, shown: dict[str, object], heard: Heard) -> None:
        super().__init__()
        self.shown = shown
        self.on_msg(lambda _widget, message, _buffers: heard(message))
