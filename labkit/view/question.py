"""Show a question that a learner answers before a run, in a notebook or on a page without a kernel.

With a kernel it is an anywidget, otherwise the same form by script. Both use one ESM module (`static/question.js`).
"""

import hashlib
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from labkit.view.assets import asset
from labkit.view.stepper import embedded

_STATIC = Path(__file__).parent / "static"
_STYLES = ("scene.css", "question.css")

Heard = Callable[[Mapping[str, Any]], None]
"""A callback for messages of the browser: `said` and `why`, `skip`, or `hello` when a view has opened."""


class QuestionForm(anywidget.AnyWidget):
    """The widget of a question to a learner, which displays the data in `shown`."""

    _esm = _STATIC / "question.js"
    _css = "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in _STYLES)
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, shown: dict[str, object], heard: Heard) -> None:
        super().__init__()
        self.shown = shown
        self.on_msg(lambda _widget, message, _buffers: heard(message))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = str(self.shown["text"])
            data["text/html"] = page_of(self.shown)
        return bundle


def page_of(shown: Mapping[str, object]) -> str:
    """Return a question as HTML that needs neither a kernel nor a network; without scripts it shows only the text."""
    data = embedded(shown)
    name = f"lk-{hashlib.sha256(data.encode()).hexdigest()[:12]}"
    script = asset("question.js").replace("export default { render };", "")
    return (
        f'<div data-lk="{name}"><style>{"".join(map(asset, _STYLES))}</style>'
        f"<p><b>{escape(str(shown['text']))}</b></p>"
        f'<script type="application/json">{data}</script>'
        f'<script type="module">{{{script}\nmount("{name}");}}</script></div>'
    )
