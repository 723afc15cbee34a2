"""Show a question that a learner answers before a run, in a notebook or on a page without a kernel.

With a kernel the question is a widget (anywidget), without one a form with a script. Both use one ESM module
(`static/question.js`).
"""

import hashlib
from collections.abc import Mapping
from html import escape
from typing import Any

from labkit.view.assets import asset
from labkit.view.form import Form, with_page
from labkit.view.stepper import embedded

_STYLES = ("scene.css", "question.css")


class QuestionForm(Form):
    """The widget of a question to a learner."""

    _esm = asset("question.js")
    _css = "\n".join(map(asset, _STYLES))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return with_page(super()._repr_mimebundle_(**options), str(self.shown["text"]), page_of(self.shown))


def page_of(shown: Mapping[str, object]) -> str:
    """Return a question as HTML that needs neither a kernel nor a network.

    If scripts are switched off, the page shows only the text of the question.
    """
    data = embedded(shown)
    name = f"lk-{hashlib.sha256(data.encode()).hexdigest()[:12]}"
    script = asset("question.js").replace("export default { render };", "")
    return (
        f'<div data-lk="{name}"><style>{"".join(map(asset, _STYLES))}</style>'
        f"<p><b>{escape(str(shown['text']))}</b></p>"
        f'<script type="application/json">{data}</script>'
        f'<script type="module">{{{script}\nmount("{name}");}}</script></div>'
    )
