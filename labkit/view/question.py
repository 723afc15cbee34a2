"""A question in a notebook and on a page: an anywidget where a kernel listens, and the same form by script where none
does.

Both are one ESM module (`static/question.js`) that draws what it is given.
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
"""Told what the browser asks for: `said` and `why`, `skip`, or `hello` when a view has opened."""


class QuestionForm(anywidget.AnyWidget):
    """The question as the browser shows it; `shown` is all that it knows."""

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
    """The question as HTML that needs neither a kernel nor a network; without scripts its text is left."""
    data = embedded(shown)
    name = f"lk-{hashlib.sha256(data.encode()).hexdigest()[:12]}"
    script = asset("question.js").replace("export default { render };", "")
    return (
        f'<div data-lk="{name}"><style>{"".join(map(asset, _STYLES))}</style>'
        f"<p><b>{escape(str(shown['text']))}</b></p>"
        f'<script type="application/json">{data}</script>'
        f'<script type="module">{{{script}\nmount("{name}");}}</script></div>'
    )
