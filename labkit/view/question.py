"""Show a question that a learner answers before a run, in a notebook or on a page without a kernel.

With a kernel the question is a widget (anywidget), without one a form with a script. Both use one ESM module
(`static/question.js`).
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from labkit.view.assets import asset
from labkit.view.form import Form, with_page
from labkit.view.stepper import embedded_page

_STYLES = ("scene.css", "question.css")


class QuestionForm(Form):
    """The widget that shows a question to a learner and receives the answer."""

    _esm = asset("question.js")
    _css = "\n".join(map(asset, _STYLES))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return with_page(super()._repr_mimebundle_(**options), str(self.shown["text"]), page_of(self.shown))


def page_of(shown: Mapping[str, object]) -> str:
    """Return a question as HTML that works without a kernel or a network; without scripts it shows only the text."""
    text = f"<p><b>{escape(str(shown['text']))}</b></p>"
    script = asset("question.js").replace("export default { render };", "")
    return embedded_page(shown, text, styles=_STYLES, script=script, mount="mount")
