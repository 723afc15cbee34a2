"""The crash panel: a form to choose a crash, run it on real Spark in the background, follow its stages, or cancel it.

Each button calls a method, and each run equals a call of `labkit.lab.crash`. `labkit.runs.choices` supplies the
choices, and `labkit.runs.background` runs the job. The result stays in the notebook as plain HTML. The panel shows no
prediction before the run.
"""

import threading
from collections.abc import Mapping
from html import escape
from inspect import Parameter
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidAction, InvalidInput, LabError
from labkit.core.failpoints import FailPoint
from labkit.core.options import with_arguments
from labkit.core.verdict import Guarantee
from labkit.core.words import nearest
from labkit.runs.background import BackgroundRun, Mark, Stage
from labkit.runs.choices import PARTS, Choice, choose, parts
from labkit.runs.outcome import Outcome
from labkit.runs.pages.result import fragment
from labkit.view.form import PanelForm

INTRO = (
    "Choose a sink and a moment, say what you expect, and run: a real PySpark job is killed there by SIGKILL, "
    "restarted from its checkpoint, and judged from outside. It takes about 20 seconds."
)
UNHEARD = (
    "The kernel does not answer. If it is busy with another cell, wait. If it was restarted, the run has ended: run "
    "this panel's cell again."
)
READY = "Ready."
OUTSIDE = (
    "This is a crash panel, which needs a running kernel: run this cell to choose sink, store, order, failpoint and "
    "input, and to kill a real Spark job there. The same in Python:"
)
THREE = "hello, world, hello (or the path of a log)"
GUARANTEES = [each.value for each in Guarantee if each is not Guarantee.UNKNOWN]
"""The guarantees that a learner can predict."""


class CrashPanel:
    """A form in a notebook with which a person crashes a real Spark job, one crash at a time, and sees the result."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.prediction: str | None = None
        self._background: BackgroundRun | None = None
        self._ran: tuple[Choice, str | None] = (choice, None)
        self._alert = ""
        self._beats = 0
        self._displayed = False
        self._lock = threading.Lock()
        self._form = PanelForm({}, self._handle)
        self._show()

    def choose(self, part: str, value: str) -> None:
        """Set the field `part` of the form to `value`, and change each other field that does not fit the new value.

        The fields are sink, store, order, failpoint and input. Raises `InvalidInput` for an unknown field or value,
        and `InvalidAction` while a job is running.
        """
        if self.under_way:
            raise InvalidAction(
                "A run has not ended yet; wait for its verdict, or cancel it, before you change the form."
            )
        self.choice = self.choice.change(part, value)
        self._alert = ""
        self._show()

    def predict(self, guarantee: str | None) -> None:
        """Store the guarantee that you expect, or None. Raises `InvalidInput` for an unknown guarantee."""
        if guarantee is not None and guarantee not in GUARANTEES:
            raise InvalidInput(f"the prediction {guarantee!r} is not a guarantee; {nearest(guarantee, GUARANTEES)}")
        self.prediction = guarantee
        self._show()

    def run(self) -> None:
        """Start the job with the chosen crash and return at once; `wait` returns its outcome.

        Raises `InvalidAction` while a job is running, and `InvalidInput` if the chosen values do not fit together.
        """
        if self.under_way:
            raise InvalidAction("A run of this panel has not ended yet; wait for its verdict, or cancel it first.")
        before = self._background, self._alert, self._ran
        # Set these before the start, because a run that fails at once calls `_changed` from its own thread.
        self._background = BackgroundRun(self.choice.scenario(), self._changed)
        self._alert, self._ran = "", (self.choice, self.prediction)
        try:
            self._background.start()
        except InvalidAction:
            self._background, self._alert, self._ran = before
            raise
        self._show()

    def cancel(self) -> None:
        """Cancel the running job and remove everything that it created. Raises `InvalidAction` if none is running."""
        if self._background is None or not self._background.under_way:
            raise InvalidAction("There is nothing to cancel, because no run is under way.")
        self._background.cancel()

    def wait(self, seconds: float | None = None) -> Outcome:
        """Wait until the job has ended, and return the job's outcome.

        Raises `TimeoutError` if the job still runs after `seconds`, and `InvalidAction` if no job was started. If the
        job failed, raises the job's error.
        """
        if self._background is None:
            raise InvalidAction("There is no result yet; press Run, or call run().")
        return self._background.wait(seconds)

    @property
    def under_way(self) -> bool:
        """Whether a job is running."""
        return self._background is not None and self._background.under_way

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the last job; None while the job runs, if it failed, or if no job was started."""
        return self._background.outcome if self._background else None

    def _handle(self, message: Mapping[str, object]) -> None:
        try:
            self._obey(message)
        except LabError as error:
            self._alert = str(error)
        self._show()

    def _obey(self, message: Mapping[str, Any]) -> None:
        if "run" in message:
            self.run()
        elif "cancel" in message:
            self.cancel()
        elif message.get("choose") == "prediction":
            self.predict(message["value"] or None)
        elif "choose" in message:
            self.choose(str(message["choose"]), str(message["value"]))

    def _changed(self) -> None:
        background = self._background
        over = background is not None and not background.under_way
        if background and over:
            self._alert = str(background.error) if background.error else ""
        self._show()
        if over:
            self._publish()

    def _show(self) -> None:
        with self._lock:  # the run's thread and the kernel's thread both call this
            self._beats += 1
            self._form.shown = self._shown()

    def _shown(self) -> dict[str, object]:
        failpoint = FailPoint(self.choice["failpoint"])
        guarantees = [["", "no prediction"], *([each, each] for each in GUARANTEES)]
        stages = self._background and self._background.stages
        marks = stages.marks if stages else dict.fromkeys(Stage, Mark.WAITING)
        return {
            "id": self._form.model_id,
            "beat": self._beats,
            "intro": INTRO,
            "unheard": UNHEARD,
            "fields": [
                *(self._field(name, part.label) for name, (part, _) in parts().items()),
                {
                    "name": "prediction",
                    "label": "your prediction",
                    "value": self.prediction or "",
                    "options": guarantees,
                },
            ],
            "hint": f"{failpoint}: {failpoint.sentence}",
            "busy": self.under_way,
            "stages": [[stage.value, mark.name.lower(), mark.value] for stage, mark in marks.items()],
            "said": self._status(),
            "alert": self._alert,
            "calls": [["in Python", self.choice.call()], ["command line", self._command()]],
        }

    def _field(self, name: str, label: str) -> dict[str, Any]:
        plain = {"name": name, "label": label, "value": self.choice[name]}
        if name not in self.choice.names:
            return plain | {"placeholder": THREE}
        labels = {"none": "nothing to order"}
        return plain | {"options": [[word, labels.get(word, word)] for word in self.choice.names[name]]}

    def _status(self) -> str:
        background = self._background
        if background is None:
            return READY
        if background.outcome:
            return f"Judged: {background.outcome.verdict.guarantee}. The result is below."
        return "" if background.error else f"{background.status[:1].upper()}{background.status[1:]} ..."

    def _command(self) -> str:
        try:
            return self.choice.scenario().command()
        except LabError as error:
            return str(error)

    def __str__(self) -> str:
        return str(self.outcome or f"A crash panel, not run yet. The same in Python: {self.choice.call()}")

    __repr__ = __str__

    def _bundle(self) -> dict[str, str]:
        if self.outcome and self._background:
            choice, prediction = self._ran
            html = fragment(self.outcome.record, prediction, choice.call())
        else:
            call = f"<code>{escape(self.choice.call())}</code>"
            html = f'<p data-lk-panel="{escape(self._form.model_id)}">{escape(OUTSIDE)} {call}</p>'
        return {"text/html": html, "text/plain": str(self)}

    def _publish(self) -> None:
        if self._displayed and self.outcome:
            from IPython.display import display

            display(self._bundle(), raw=True, display_id=self._form.model_id, update=True)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self._form)
        display(self._bundle(), raw=True, display_id=self._form.model_id)
        self._displayed = True


def panel(sink: str = "append", **parts: str | Path | None) -> CrashPanel:
    """Return a form with which a person chooses and runs crashes of a real Spark job; a notebook displays it.

    `parts` are further initial values, such as `failpoint`. `choose(part, value)`, `run()`, `cancel()` and `wait()`
    do the same as the form's fields and buttons. Raises `InvalidInput` if a value is unknown or the values do not
    fit together.
    """
    return CrashPanel(choose(sink=sink, **parts))


with_arguments(
    panel, [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation="str | None") for name in PARTS[1:]]
)
