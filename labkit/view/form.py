"""Show forms in a notebook: widgets that display data from Python and send back what a person chooses or types."""

from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import traitlets

from labkit.view.assets import asset


def with_page(bundle: Any, plain: str, page: str) -> Any:
    """Add the text `plain` and the HTML `page` to a widget's MIME bundle, and return the bundle.

    Jupyter shows them when no kernel runs.
    """
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    if data is not None:
        data |= {"text/plain": plain, "text/html": page}
    return bundle


class Form(anywidget.AnyWidget):
    """A widget that displays the data in `shown`, and calls `heard` with each message from the browser.

    A message is a dictionary. The first key names the user's action, such as `run`. The key `hello` is no action: it
    means that the browser has opened a view of the widget.
    """

    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, shown: dict[str, object], heard: Callable[[Mapping[str, Any]], None]) -> None:
        super().__init__()
        self.shown = shown
        self.on_msg(lambda _widget, message, _buffers: heard(message))


class PanelForm(Form):
    """The widget in which a user chooses where to kill a job (the crash panel)."""

    _esm = asset("panel.js")
    _css = "\n".join(map(asset, ("scene.css", "stepper.css", "panel.css")))
