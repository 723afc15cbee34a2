"""The exercise of notebook 11b: the engine of a workflow, which may be killed after any of its actions.

The judge performs every run: after each action the process may die, and a new one, perhaps with a new version of the
workflow, runs it again from its first step; the receiver's answer may get lost, and a process may be suspended for
hours. A simulated receiver remembers keys for a limited time.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import NamedTuple, cast

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.keys_alike import (
    FEWEST_BITS,
    Step,
    bits,
    joined,
    joined_as,
    names_alike,
    numbers_alike,
    padded,
    random_runs,
    runs_alike,
)
from labkit.teach.exercises.searching import Wrong, steady, unusable

NAMES = ("charge", "mail")


class Entry(NamedTuple):
    """An entry of the workflow engine's journal; it says that a step was started, or which result it had."""

    number: int
    name: str
    kind: str
    """`started` or `done`."""
    value: Plain
    """The hour of the start, or the result."""


class Run(NamedTuple):
    """The state of one simulated run, which is the state of the workflow and of the receiver of its messages."""

    version: int = 0
    """0 for the workflow's old version, 1 for the new one."""
    place: int = 0
    """The number of steps whose results the workflow has got in this process, and thus the next step's position."""
    journal: tuple[Entry, ...] = ()
    here: tuple[str, ...] = ()
    """What the running process has done for this step: `start`, `send`."""
    is_fresh: bool = False
    """Whether the running process was the first to start this step."""
    reply: tuple[Plain, ...] = ()
    """The receiver's answer to this process for this step, if it has arrived."""
    now: int = 0
    """The hour."""
    accepted: tuple[tuple[int, str, int], ...] = ()
    """What the receiver has accepted: the step's number, its key, and the hour."""
    crashes: int = 0
    losses: int = 0
    stalls: int = 0
    """How often a process may still be killed (`crashes`) or suspended (`stalls`), and an answer be lost (`losses`)."""
    story: tuple[str, ...] = ()
    """The actions so far as text, for the message to the learner."""


class Workflow(NamedTuple):
    """The constant part of a simulated run: the workflow's steps in each version, and how the receiver treats keys."""

    run: str
    versions: Sequence[Sequence[str]]
    first: int
    """The number of the first step."""
    results: Sequence[Plain] = ("ok 1", "ok 2", "ok 3")
    keeps: int = 24
    """For how many hours the receiver remembers a key; 0 if it takes none."""
    downtimes: Sequence[int] = (1,)


Keys = dict[str, tuple[str, int]]
"""The idempotency keys seen so far, each with the name of its run and its step's number; functions add new keys."""


class Asked(NamedTuple):
    """The step that a workflow wants to execute, and the answer of the learner's engine."""

    number: int
    name: str
    reply: str
    """The call of the learner's function and its answer, as text."""


def judge_runner(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's rule for an engine that runs a workflow step by step, in every possible run.

    `variant` may describe the workflow: `steps` and `results`, the names and results of its steps; `then`, the names of
    the steps in a new version, which may replace the old one at a restart; `firsts`, the numbers that the first step
    may have; `runs`, the names of runs that share a receiver; and `hour`, the time at which each run begins. The
    receiver remembers a key for `keeps` hours. A run has at most `crashes` kills, `losses` lost answers and `stalls`
    pauses of a process; a restart or a pause takes one of the `downtimes`, in hours.

    If the variant has a `probe` (a run, a step's name and its number), no runs are simulated. Then the learner's rule
    is called only for this step, and for steps and names that a careless rule confuses with it (see `_probed`).
    """
    ask = Asker(answer, "next_action")
    parameters = dict(variant.parameters)
    steps = parameters.get("steps", NAMES)
    versions = [steps, parameters["then"]] if "then" in parameters else [steps]
    receiver = {name: parameters[name] for name in ("results", "keeps", "downtimes") if name in parameters}
    faults = {name: parameters.get(name, 0) for name in ("crashes", "losses", "stalls")}
    begin = Run(now=parameters.get("hour", 0), **faults)
    keys: Keys = {}
    states = 0
    try:
        if "probe" in parameters:
            states += _probed(ask, Step(*parameters["probe"]), keys)
            return steady(ask, f"All of {states:,} keys were right")
        for name, first in product(parameters.get("runs", ("run 7",)), parameters.get("firsts", (0,))):
            states += _search(ask, Workflow(name, versions, first, **receiver), begin, keys)
    except Unusable as error:
        return unusable(ask.name, error)
    except Wrong as wrong:
        return wrong.finding
    return steady(ask, f"All of {states:,} states were right")


def _search(ask: Asker, workflow: Workflow, begin: Run, keys: Keys) -> int:
    """Try every run of a workflow from the state `begin`, and return the number of states.

    Raises `Wrong` for a wrong action.
    """
    todo = deque([begin])  # in the order of actions, so that a learner sees a shortest run
    seen = {_key(begin)}
    while todo:
        run = todo.popleft()
        for after in chain(_next(ask, workflow, run, keys), _stalls(workflow, run)):
            if (key := _key(after)) not in seen:
                seen.add(key)
                todo.append(after)
    return len(seen)


def _key(run: Run) -> str:
    return repr(run._replace(story=()))  # as text, because 0 and False are different results


def _next(ask: Asker, workflow: Workflow, run: Run, keys: Keys) -> Iterator[Run]:
    """Yield the states after the engine's next action, also after a lost answer or a kill.

    The learner's function chooses the action. Raises `Wrong` for a wrong one, such as one with another step's key.
    """
    name = workflow.versions[run.version][run.place]
    number = workflow.first + run.place
    action, reply = _action(ask, workflow, run, number)
    asked = Asked(number, name, reply)
    kind = str(action[0])
    story = (*run.story, f"{kind} {name}")
    _check(workflow, run, asked, action)
    if kind in {"refuse", "stop"}:
        return
    if kind == "start":
        entry = Entry(number, name, "started", run.now)
        is_fresh = run.is_fresh or not any(each.number == number for each in run.journal)
        after = run._replace(journal=(*run.journal, entry), here=(*run.here, "start"), is_fresh=is_fresh)
    elif kind == "done":
        after = run._replace(journal=(*run.journal, Entry(number, name, "done", action[1])))
    elif kind == "return":
        after = run._replace(place=run.place + 1, here=(), is_fresh=False, reply=())
    else:
        after = _receive(workflow, run, asked, str(action[1]), keys)
        if run.losses:
            lost = (*story, "the answer is lost")
            yield after._replace(reply=(), losses=run.losses - 1, story=lost)
    after = after._replace(story=story)
    if after.place < len(workflow.versions[run.version]):
        yield after
    if run.crashes:
        yield from _restarts(workflow, after)


def _restarts(workflow: Workflow, run: Run) -> Iterator[Run]:
    for hours in workflow.downtimes:
        for version in range(run.version, len(workflow.versions)):
            what = "killed, and started" if version == run.version else "killed, and the new version started"
            yield run._replace(
                version=version,
                place=0,
                here=(),
                is_fresh=False,
                reply=(),
                now=run.now + hours,
                crashes=run.crashes - 1,
                story=(*run.story, f"{what} {hours} h later"),
            )


def _stalls(workflow: Workflow, run: Run) -> Iterator[Run]:
    for hours in workflow.downtimes if run.stalls else ():
        yield run._replace(now=run.now + hours, stalls=run.stalls - 1, story=(*run.story, f"{hours} h without action"))


def _probed(ask: Asker, probe: Step, keys: Keys) -> int:
    """Check a learner's engine on steps and names that a careless rule confuses with `probe`.

    Returns the number of checked steps and names, including `probe`. Raises `Wrong` for equal or too short keys, and
    for a wrong action. The texts in `probe` should consist of small letters, so that lower-casing and most other
    simplifications do not change them.
    """
    key = _first_key(ask, probe, keys)
    run, _, number = probe
    steps = [*joined_as(key, probe), *joined(run, number), *padded(run), *runs_alike(probe), *numbers_alike(probe)]
    for step in ask.announced(steps, _question):
        _first_key(ask, step, keys)
    hashed = [_first_key(ask, step, keys) for step in ask.announced(random_runs(probe), _question)]
    if (size := bits(hashed)) < FEWEST_BITS:
        raise Wrong(
            f"Even runs with long names get short keys, such as {shown(hashed[0])} and {shown(hashed[1])}, so the keys "
            "are hashes.",
            f"They can differ in about {size:.0f} bits only, so among many messages two have the same key.",
            "The key is a hash, or a number, of too few bits: some messages have the same.",
        )
    states = [_renamed(probe, *pair) for pair in dict.fromkeys(names_alike(probe.name))]
    for workflow, run_before in ask.announced(states, lambda state: _arguments(*state, number)):
        action, reply = _action(ask, workflow, run_before, number)
        _check(workflow, run_before, Asked(number, workflow.versions[0][0], reply), action)
    return 1 + len(steps) + len(hashed) + len(states)


def _renamed(probe: Step, before: str, name: str) -> tuple[Workflow, Run]:
    """Return a workflow and the state of its run, in which a step was renamed from `before` to `name`.

    The journal has the old name, the program the new one, so the engine must refuse to continue.
    """
    run = Run(journal=(Entry(probe.number, before, "started", 0),), now=1, story=(f"the start of {shown(before)}",))
    return Workflow(probe.run, [[name]], probe.number), run


def _question(step: Step, keeps: int = 24) -> tuple[Plain, ...]:
    """Return arguments of the learner's function for a state in which it must send the message of `step`.

    `keeps` is the number of hours for which the receiver of the message remembers its idempotency key.
    """
    about: dict[str, Plain] = {"run": step.run, "number": step.number, "name": step.name, "keeps": keeps}
    return about, [[step.number, step.name, "started", 0]], ["start"], [], 0


def _first_key(ask: Asker, step: Step, keys: Keys) -> str:
    """Return the idempotency key that the learner's engine gives to a step's first message.

    Raises `Wrong` if another step has this key, or if the engine does not send the message.
    """
    workflow = Workflow(step.run, [[step.name]], step.number)
    entry = Entry(step.number, step.name, "started", 0)
    run = Run(journal=(entry,), here=("start",), is_fresh=True, story=("its start",))
    action, reply = _action(ask, workflow, run, step.number)
    asked = Asked(step.number, step.name, reply)
    _check(workflow, run, asked, action)
    key = str(action[1])  # no other action than `send` passes this check
    _receive(workflow, run, asked, key, keys)
    return key


def _arguments(workflow: Workflow, run: Run, number: int) -> tuple[Plain, ...]:
    """Return the arguments of the learner's function for the next action in this state, at step `number`."""
    name = workflow.versions[run.version][run.place]
    step, *_ = _question(Step(workflow.run, name, number), workflow.keeps)
    journal: list[Plain] = [list(entry) for entry in run.journal]
    return step, journal, list(run.here), list(run.reply), run.now


def _action(ask: Asker, workflow: Workflow, run: Run, number: int) -> tuple[list[Plain], str]:
    """Return the next action of the learner's engine at step `number`, and a text with the call and its answer."""
    arguments = _arguments(workflow, run, number)
    value = ask(*arguments)
    reply = ask.with_answer(*arguments)
    if run.story:
        reply = f"After {', '.join(run.story[-8:])}: {reply}"
    length = {"start": 1, "send": 2, "done": 2, "return": 2, "refuse": 1, "stop": 1}
    if type(value) is list and value and type(value[0]) is str and length.get(value[0]) == len(value):
        if value[0] == "send" and (type(value[1]) is not str or not value[1]):
            raise Unusable(f"{reply}; the key must be text and not empty, so it cannot be {shown(value[1])}.")
        return value, reply
    actions = '["start"], ["send", key], ["done", result], ["return", result], ["refuse"] or ["stop"]'
    raise Unusable(f"{reply}; an action must be {actions}, not {shown(value)}.")


def _check(workflow: Workflow, run: Run, asked: Asked, action: Sequence[Plain]) -> None:
    """Raise `Wrong` if the learner's `action` contradicts the journal, or what this process has done and received.

    The action `stop` is also wrong if the receiver cannot accept the step's message twice (see `_is_in_doubt`). `asked`
    has the number and name of the step that the workflow wants to execute.
    """
    number, name, reply = asked
    entries = [entry for entry in run.journal if entry.number == number]
    kind = action[0]
    other = next((entry.name for entry in entries if entry.name != name), None)
    if other is not None or kind == "refuse":
        _check_refusal(asked, other, str(kind))
        return
    results = [entry.value for entry in entries if entry.kind == "done"]
    if results or kind == "return":
        _check_return(results, action, reply)
    elif run.reply or kind == "done":
        _check_result(run, action, reply)
    elif kind == "start" and "start" in run.here:
        raise Wrong(
            f"{reply}, although this process has started the step already.",
            "A process starts a step only once; an engine that starts it again and again makes no progress.",
            "The engine starts a step twice in one process.",
        )
    elif kind == "stop" and not _is_in_doubt(workflow, run, entries):
        raise Wrong(
            f"{reply}, although the engine can send the message without any risk that the receiver accepts it twice.",
            "A person is needed only if the receiver may have accepted the message and forgotten its key.",
            "The engine stops although it could go on.",
        )


def _check_refusal(asked: Asked, other: str | None, kind: str) -> None:
    number, name, reply = asked
    if other is None:
        raise Wrong(
            f"{reply}, although the journal has no step with another name under number {number}.",
            "The engine refuses only a workflow that asks for another step than before.",
            "The engine refuses a workflow although it asks for the same steps.",
        )
    if kind != "refuse":
        raise Wrong(
            f"{reply}, although entry {number} of the journal belongs to the step {other}, not to {name}.",
            "The journal belongs to another version of the workflow, so the engine refuses it.",
            "The engine goes on although the journal belongs to another version of the workflow.",
        )


def _check_return(results: Sequence[Plain], action: Sequence[Plain], reply: str) -> None:
    if not results:
        raise Wrong(
            f"{reply}, but the journal does not have this result.",
            "A workflow gets a result only after the journal has it: after a kill, the step might give another one.",
            "A result is returned that is not in the journal.",
        )
    if action[0] != "return":
        raise Wrong(
            f"{reply}, although the journal has the step's result {shown(results[0])}.",
            "A step that is done is not executed again; the workflow gets its result.",
            "A step is executed although its result is in the journal.",
        )
    if repr(action[1]) != repr(results[0]):
        raise Wrong(
            f"{reply}, but the journal has another result of this step: {shown(results[0])}.",
            "The workflow gets the result that the journal has.",
            "The workflow gets another result than the noted one.",
        )


def _check_result(run: Run, action: Sequence[Plain], reply: str) -> None:
    if not run.reply:
        raise Wrong(
            f"{reply}, but the receiver has not answered this process yet.",
            "The journal gets a result only after the receiver has answered with it.",
            "The engine notes a result before the receiver has answered.",
        )
    if action[0] != "done":
        raise Wrong(
            f"{reply}, but the receiver has answered {shown(run.reply[0])}; first note this answer in the journal.",
            "The engine notes a result as soon as it has arrived, because a kill erases what is only in memory.",
            "The receiver's answer has arrived, and the engine does not note it.",
        )
    if repr(action[1]) != repr(run.reply[0]):
        raise Wrong(
            f"{reply}, but the receiver's answer was another one: {shown(run.reply[0])}.",
            "The journal must have the receiver's answer as the result.",
            "The engine notes another result than the receiver's answer.",
        )


def _is_in_doubt(workflow: Workflow, run: Run, entries: Sequence[Entry]) -> bool:
    """Return whether it is dangerous to send this step's message now.

    The danger is that the message was sent before, and the receiver would not recognise the repetition, because it has
    forgotten the message's key or takes no keys at all.
    """
    begun = [cast("int", entry.value) for entry in entries if entry.kind == "started"]
    if not begun or (run.is_fresh and "send" not in run.here):
        return False
    return run.now - begun[0] >= workflow.keeps


def _receive(workflow: Workflow, run: Run, asked: Asked, key: str, keys: Keys) -> Run:
    """Return the state of the run after the receiver has answered a message with this key.

    Raises `Wrong` if another step's message had this key, or if the receiver accepts the message again.
    """
    number, name, reply = asked
    before = keys.setdefault(key, (workflow.run, number))
    if before != (workflow.run, number):
        raise Wrong(
            f"{reply}, but step {before[1]} of {shown(before[0])} already has this key.",
            "The receiver takes the second message for a repetition of the first one, and drops it.",
            "Two different messages have one key: the receiver drops the second.",
        )
    is_known = any(key == other and run.now - since < workflow.keeps for _, other, since in run.accepted)
    earlier = [(other, since) for each, other, since in run.accepted if each == number]
    if earlier and not is_known:
        raise Wrong(
            f"{reply}: the receiver accepts the {name} twice.",
            _why_twice(workflow, earlier, key),
            "The receiver accepts a message twice.",
        )
    accepted = run.accepted if is_known else (*run.accepted, (number, key, run.now))
    result = workflow.results[run.place % len(workflow.results)]
    return run._replace(here=(*run.here, "send"), reply=(result,), accepted=accepted)


def _why_twice(workflow: Workflow, earlier: Sequence[tuple[str, int]], key: str) -> str:
    """Return why the receiver did not recognise a message that it had accepted before.

    `key` is the message's key now. `earlier` has a pair for each time when the receiver accepted the message: the key
    that the message had then, and the hour.
    """
    if not workflow.keeps:
        return "This receiver takes no keys, so a message that may have been sent is never sent again."
    first, hour = earlier[0]
    if first != key:
        return f"The first message had the key {first!r}; every attempt needs the same key."
    return f"It accepted the first one at hour {hour}, and forgets a key after {workflow.keeps} hours."


STILL = (23, 24)

JUDGES = {
    "11b-runner": by(
        judge_runner,
        variant("no crash"),
        variant("a crash", crashes=1),
        variant("a receiver without keys", keeps=0, crashes=1),
        variant("keys that expire", steps=("charge",), crashes=2, downtimes=(1, 23, 24), hour=5),
        variant("a lost answer", losses=1),
        variant("a lost answer, without keys", keeps=0, losses=1),
        variant("a new version", then=("voucher", "charge", "mail"), crashes=1),
        variant("empty results", results=(0, None), crashes=1),
        variant("two runs of many mails", runs=("run 1", "run 11"), steps=("mail",) * 12),
        variant("a step that starts hours after the run", keeps=12, crashes=2, downtimes=(9, 3)),
        variant("two steps of one name, hours apart", keeps=12, steps=("mail", "mail"), crashes=2, downtimes=(9, 3)),
        variant("a crash after many steps", steps=(*("mail",) * 10, "charge"), crashes=1),
        variant("a process that stands still", steps=("mail",), hour=3, losses=1, crashes=1, stalls=1, downtimes=STILL),
        variant(
            "words of the journal as names and results",
            runs=("started", "done"),
            steps=("done", "started", "abandoned"),
            then=("started", "done", "send"),
            results=("started", 1, "done"),
            crashes=1,
            hour=1,
        ),
        variant("runs and names of any text", probe=("order", "mail", 1_040)),
    )
}
