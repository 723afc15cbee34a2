"""Answer the messages of the player in a browser: translate a click into a call of a `Session`, and return the changes.

The player is the view in which a reader steps through a simulator's run. A notebook's widget and a page without a
kernel carry messages in different ways, but both use this module and the same front end (`static/stepper.js`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from labkit.core.errors import LabError
from labkit.core.kinds import Key, Number, Switch
from labkit.sim.futures import Fate, Prospect
from labkit.sim.model import Action, Property
from labkit.sim.parameters import Parameter
from labkit.sim.trace import blueprint
from labkit.view.exports import FORMATS, written
from labkit.view.narration import BROKEN, FAULT_KEYS, KEY_HELP, LIVE_KEY_HELP, Story
from labkit.view.session import Session
from labkit.view.updates import StoryUpdates

Message = Mapping[str, Any]

_KEYS = [list(pair) for pair in (*KEY_HELP, *LIVE_KEY_HELP)]
_ENDINGS = {"mermaid": "mmd", "plantuml": "puml", "shiviz": "log", "svg": "svg"}


class Presenter:
    """Connects a simulator `Session` with its players. A player is a view in the browser that steps through the run.

    `send` carries JSON-compatible data to all players. A player receives all data when it opens, or when it notices a
    gap in the version numbers; otherwise it receives only changes. `done` names the tasks (small goals for the reader)
    that are completed. Only an action of the reader completes a task, and undo does not reopen the task.
    """

    def __init__(self, session: Session, send: Callable[[dict[str, object]], None], done: Iterable[str] = ()) -> None:
        self.session = session
        self._done = dict.fromkeys(done)
        self._send = send
        self._updates = StoryUpdates(session.story)
        self._version = 0
        self._notice = ""
        self._model = ""
        self._beside: tuple[Story | None, int] = None, 0
        self._verbs: Mapping[str, Callable[[Message], str | None]] = {
            "do": lambda message: self.do(str(message["do"]), int(message["at"])),
            "undo": lambda _: session.undo(),
            "redo": lambda _: session.redo(),
            "scenario": lambda message: session.scenario(str(message["scenario"])),
            "open": lambda message: session.open(_run_in(str(message["open"]))),
            "choose": self._choose,
            "keep": self._keep,
            "jump": self._jump,
        }

    def handle(self, message: Message) -> None:
        """Carry out a message from the browser, such as a click, and send back the answer or an error message.

        The message `look` asks whether the run can go wrong after a step, and `export` asks for the run as a file. All
        other messages change the run.
        """
        try:
            if "look" in message:
                self._send({"ladder": self.ladder(int(message["look"]))})
                return
            if "export" in message:
                self._send({"file": self._file(str(message["export"]), int(message["at"]))})
                return
            verb = next(verb for verb in self._verbs if verb in message)
            notice = self._verbs[verb](message) or ""
        except LabError as error:
            notice = str(error)
        self.tell(notice)

    def do(self, action: str, at: int | None = None) -> str:
        """Take an action that the reader has chosen, in the state after step `at` (default: the current step).

        If the action completes tasks (small goals for the reader), the method returns a sentence that names them,
        otherwise an empty text. Raises `InvalidAction` if the action is impossible there.
        """
        session = self.session
        session.do(action, at)
        tasks = blueprint(session.trace.model).tasks
        names = {name: _task(session.trace.model, name) for name in session.story.fulfilled(session.at)}
        new = [name for name, full in names.items() if full not in self._done]
        self._done |= dict.fromkeys(names.values())
        return f"Done: {' '.join(tasks[name].sentence for name in new)}" if new else ""

    def _choose(self, message: Message) -> None:
        self.session.go(int(message["at"]))
        self.session.choose(dict(message["choose"]))

    def _keep(self, message: Message) -> str:
        session = self.session
        session.go(int(message["keep"]))
        session.keep(session.at)
        return "This run stays beside the next one, for comparison." if session.kept else "The other run is put away."

    def _jump(self, message: Message) -> str:
        prospect = self.session.jump(str(message["jump"]), int(message["at"]))
        return f"The run now breaks a claim, after {_steps(prospect)} more. Step back to see how, or undo to leave it."

    def everything(self) -> dict[str, object]:
        """Return everything that a player (a view of the run in the browser) shows, as JSON-compatible data."""
        session, updates = self.session, self._now()
        # If Python code has changed the session, the other players also have to ask for all data.
        self._version += updates.is_behind
        update = {"story": {**updates.whole(session.differs_at), "keys": _KEYS}, **self._around()}
        return {**update, **self._compared(), "choices": choices(session.trace.model), "version": self._version}

    def tell(self, notice: str) -> None:
        """Send all players (views of the run) the changes since the last message, with the sentence `notice`."""
        session, base = self.session, self._version
        self._notice = notice
        self._version += 1
        news = self._now().news(session.differs_at)
        if "whole" in news:
            news["whole"]["keys"] = _KEYS
        message = {"base": base, "version": self._version, "story": news, **self._around()}
        if session.trace.model != self._model:
            self._model = session.trace.model
            message["choices"] = choices(self._model)
        compared = session.kept, session.differs_at
        if compared != self._beside:
            message |= self._compared()
            self._beside = compared
        self._send(message)

    def ladder(self, step: int) -> dict[str, object]:
        """Return, for each action that is possible at a step, how often runs that begin with it violate a property.

        The result is a dict. `of` is the trace up to the step. `said` is a text that names the violated properties and
        says whether the search was complete. `rungs` is a list with a dict for each action. Its `fate` says whether
        none, some or all schedules (sequences of actions) that begin with the action violate a property. `share` is the
        share of schedules with a violation (None if unknown), `words` is the same as text, and `leads` says whether the
        player can jump to a violation.
        """
        session, story = self.session, self.session.story
        of = str(session.beginning(step).trace)
        claims = list(story.model.properties())
        verdicts = zip(claims, story.verdicts[step], strict=True)
        broken = [number for number, (_, verdict) in enumerate(verdicts) if verdict.outcome == BROKEN]
        if broken:
            rungs = [_rung(each, Fate.WRONG, 1.0, "wrong already", leads=False) for each in story.enabled[step]]
            said = f"Broken already: {_named(claims, broken)} No later step can repair that."
            return {"of": of, "rungs": rungs, "said": said}
        prospects = session.prospects(step)
        numbers = {claim.name: number for number, claim in enumerate(claims)}
        rungs = [
            _rung(each.action, each.fate, each.share, in_words(each, numbers), leads=bool(each.nearest))
            for each in prospects
        ]
        met = sorted({numbers[each.broken] for each in prospects if each.broken})
        said = " ".join(filter(None, (self._extent(step, prospects), _named(claims, met))))
        return {"of": of, "rungs": rungs, "said": said}

    def _extent(self, step: int, prospects: Sequence[Prospect]) -> str:
        if not prospects:
            return ""
        if not self.session.sees_all(step):
            most = f"more than {self.session.most_states:,} states can follow"
            return f"Not all schedules were searched, because {most}. Choose smaller parameters."
        if any(each.share is not None and each.counted is None for each in prospects):
            return "All schedules were searched. Some never end, so the shares count each next step as equally likely."
        return "All schedules were searched."

    def _file(self, to: str, at: int) -> dict[str, str]:
        """Return the run up to step `at` (0: the whole run) as a file in the format `to`: its `name` and its `text`."""
        story = Story(self.session.beginning(at or len(self.session.story.actions)))
        text = written(story.diagram(), f"{story.title}, {story.chosen}", to)
        return {"name": f"{story.model.name}.{_ENDINGS[to]}", "text": text}

    def _now(self) -> StoryUpdates:
        if self._updates.story is not self.session.story:
            self._updates = StoryUpdates(self.session.story, self._updates.generation + 1)
        return self._updates

    def _around(self) -> dict[str, object]:
        return {"at": self.session.at, "notice": self._notice, "done": list(self._done)}

    def _compared(self) -> dict[str, object]:
        session = self.session
        if session.kept is None:
            return {"beside": None, "said": ""}
        step = session.differs_at
        difference = f"The first difference is in step {step}." if step else "No difference from the kept run yet."
        return {"beside": {**StoryUpdates(session.kept).whole(step), "keys": _KEYS}, "said": difference}


def choices(model: str) -> dict[str, object]:
    """Return a simulator's scenarios, parameters, tasks, export formats and hotkeys, from which a reader can choose."""
    shown = blueprint(model)
    return {
        "scenarios": {name: scenario.watch_for for name, scenario in shown.scenarios.items()},
        "parameters": [_handle(name, parameter) for name, parameter in shown.parameters.items()],
        "tasks": {_task(model, name): task.sentence for name, task in shown.tasks.items()},
        "formats": list(FORMATS),
        "fault_keys": {key: event.value for key, event in FAULT_KEYS.items()},
    }


def _task(model: str, name: str) -> str:
    return f"{model}.{name}"


def _handle(name: str, parameter: Parameter) -> dict[str, object]:
    handle: dict[str, object] = {"name": name, "meaning": parameter.meaning, "default": parameter.default}
    kind = parameter.kind
    if isinstance(kind, Key):
        return handle | {"options": kind.names}
    if isinstance(kind, Number):
        return handle | {"least": kind.least, "most": kind.most}
    return handle | {"switch": isinstance(kind, Switch)}


def _rung(action: Action, fate: Fate, share: float | None, words: str, *, leads: bool) -> dict[str, object]:
    return {"a": str(action), "fate": fate.value, "share": share, "words": words, "leads": leads}


def in_words(prospect: Prospect, numbers: Mapping[str, int]) -> str:
    """Return a short text that says whether the run can go wrong after an action.

    `prospect` is the result of the search. `numbers` maps the name of each property to its position, from 0. The text
    counts properties from 1, as the page does.
    """
    if prospect.fate is Fate.RIGHT:
        return "always right"
    if prospect.fate is Fate.UNKNOWN:
        return "nothing wrong seen"
    nearest = f"breaks claim {numbers[prospect.broken] + 1} in {_steps(prospect)} at the earliest"
    if prospect.fate is Fate.WRONG:
        return f"always wrong: {nearest}"
    return f"{_share(prospect)}: {nearest}"


def _named(claims: Sequence[Property[Any]], numbers: Iterable[int]) -> str:
    return " ".join(f"Claim {number + 1}: “{claims[number].sentence}”" for number in numbers)


def _run_in(text: str) -> str:
    """Return the trace in a pasted text, which is the trace itself or an address whose fragment contains it."""
    return unquote(text.partition("#")[2]) if "://" in text else text


def _steps(prospect: Prospect) -> str:
    number = len(prospect.nearest)
    return f"{number} {'step' if number == 1 else 'steps'}"


_FEW = 10_000
"""The number of schedules (ways in which a run can go on) above which the reader gets a percentage and no counts."""


def _share(prospect: Prospect) -> str:
    if prospect.share is None:
        return "some wrong"
    if prospect.counted and prospect.counted[1] <= _FEW:
        wrong, total = prospect.counted
        return f"wrong in {wrong:,} of {total:,}"
    percent = min(99, max(1, round(100 * prospect.share)))
    word = "less than " * (prospect.share < 0.01) + "more than " * (prospect.share > 0.99)
    return f"wrong in {word}{percent} %"
