"""Judge a learner's rule by an exhaustive search of the simulator that the rule controls.

The judge reports a shortest run to a state that violates a property, or from which the run can never end. The second
fault is not visible in the state itself, so no property detects it.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Generic, TypeVar

from labkit.sim.explore import Search, Violation
from labkit.sim.trace import Trace, make
from labkit.teach.exercises.asking import Asker, Unusable
from labkit.teach.exercises.closing import ClosedModel, Run
from labkit.teach.exercises.contract import Answer, Finding, Judge, Plain, Variant

T = TypeVar("T")
MAX_STATES = 40_000
"""The largest number of states that a search visits to judge an answer; right answers need far fewer."""

ANSWERS = 3
"""The number of the learner's answers that a message quotes."""


class Wrong(Exception):
    """A function of the learner took a wrong step. `finding` is the failed result, which tells the learner why."""

    def __init__(self, observed: str, expected: str, general: str) -> None:
        super().__init__(observed)
        self.finding = Finding(False, f"{observed} {expected}", observed, expected, general=general)


@dataclass
class AnswerNode:
    """A node in a tree of search results, which saves the search for a function that answers like an earlier one.

    An inner node holds the arguments of the next call, and in `after` a child for each answer. A leaf holds the result
    (`finding`) of the search with these answers.
    """

    arguments: tuple[Any, ...] = ()
    after: dict[str, "AnswerNode"] = field(default_factory=dict)
    finding: Finding | None = None
    is_settled: bool = False

    def look(self, ask: Asker) -> "AnswerNode | None":
        """Call the learner's function with the arguments in this tree, and return the leaf to which its answers lead.

        Returns None if no earlier function gave these answers.
        """
        node: AnswerNode | None = self
        while node is not None and not node.is_settled:
            node = node.after.get(json.dumps(ask(*node.arguments))) if node.after else None
        return node

    def keep(self, ask: Asker, finding: Finding | None) -> None:
        """Store `finding`, the result of a search, as a leaf of this tree.

        `ask` has the calls of the learner's function in that search. Each call is a node on the path to the leaf, and
        its answer selects the next node.
        """
        node = self
        for arguments, answer in ask.questions:
            node.arguments = tuple(arguments)
            node = node.after.setdefault(json.dumps(answer), AnswerNode())
        node.is_settled, node.finding = True, finding


@cache
def _search_tree(_configuration: str) -> AnswerNode:
    return AnswerNode()


@dataclass(frozen=True)
class Drill:
    """An exercise whose answer is a rule that the simulator `model` leaves open; a search tries every schedule.

    `close` builds the closed simulator from the open one and the learner's function. `ends` is the name of the
    simulator's property that holds when a run has ended.
    """

    function: str
    model: str
    close: Callable[[Any, Asker], ClosedModel | Run] = Run
    ends: str = "ends"

    def judge(self, answer: Answer, variant: Variant) -> Finding:
        """Check the learner's function in every schedule of the simulator; `variant` has the simulator's parameters."""
        ask = Asker(answer, self.function)
        try:
            model = self.close(make(self.model, dict(variant.parameters)), ask)
            configuration = json.dumps([model.name, model.version, ask.name, dict(model.values)])
            finding = remembered(ask, configuration, lambda: judge(model, self.ends))
        except Unusable as error:
            return unusable(ask.name, error)
        seen = "Every schedule was tried, and none breaks a claim"
        return finding if finding is not None else steady(ask, seen, often=True)


def by_parameter(usual: Judge, **others: Judge) -> Judge:
    """Return a judge that leaves the check to one of several judges, depending on the variant's parameters.

    This is the first judge in `others` whose name is one of the parameters; if there is none, it is `usual`.
    """

    def judge(answer: Answer, variant: Variant) -> Finding:
        parameters = dict(variant.parameters)
        return next((each for name, each in others.items() if name in parameters), usual)(answer, variant)

    return judge


def remembered(ask: Asker, configuration: str, judge: Callable[[], Finding | None]) -> Finding | None:
    """Return the result of an earlier search whose function gave the same answers; if there is none, call `judge`.

    The learner's function is called with the arguments of the earlier search, to compare the answers. `configuration`
    is a text with the simulator and its settings; only searches with the same text are compared.
    """
    tree = _search_tree(configuration)
    if settled := tree.look(ask):
        return settled.finding
    finding = judge()
    tree.keep(ask, finding)
    return finding


def unusable(name: str, error: Unusable) -> Finding:
    """Return the failed result for an answer of the wrong form by the learner's function `name`."""
    return Finding(False, str(error), general=f"{name} returned a value of the wrong form, or something impossible.")


def steady(ask: Asker, seen: str, *, often: bool = False) -> Finding:
    """Repeat some calls of a function that passed all tests, and return the final result.

    The function fails if it answers a repeated call differently. `seen` is a sentence on the tests that it passed. With
    `often`, a few short calls are repeated many times.
    """
    if changed := ask.changed(often=often):
        general = f"{ask.name} answered a question in two ways; the answer must depend on its arguments alone."
        return Finding(False, changed, changed, "The same arguments get the same answer.", general=general)
    return Finding(True, f"{seen}; {ask.name} was asked {len(ask.questions)} different questions.", seen)


def ask_each(ask: Asker, cases: Iterable[T], wrong: Callable[[T], Finding | None], right: str) -> Finding:
    """Check a learner's function on one case after the other, and return the first failed result of `wrong`.

    If every case passes, return a passed result with the message `right`, in which `{}` becomes the number of cases.
    """
    count = 0
    try:
        for case in cases:
            count += 1
            if finding := wrong(case):
                return finding
    except Unusable as error:
        return unusable(ask.name, error)
    return steady(ask, right.format(f"{count:,}"))


@dataclass(frozen=True)
class Cases(Generic[T]):
    """An exercise whose answer is a function, which is checked on one test case after the other.

    `wrong` calls the function for one case, and returns the failed result, or None if the answer is right. The message
    for a passed exercise is `right`, in which `{}` becomes the number of cases, and `{name}` the parameter of this name
    in the test configuration. If every case makes one call whose arguments do not depend on earlier answers, `question`
    returns these arguments, so that many calls are sent at once.
    """

    function: str
    cases: Callable[[Variant], Iterable[T]]
    wrong: Callable[[Asker, T], Finding | None]
    right: str
    question: Callable[[T], Sequence[Plain]] | None = None

    def judge(self, answer: Answer, variant: Variant) -> Finding:
        """Check the learner's function on every test case of `variant`, and return the first failure or the pass."""
        ask = Asker(answer, self.function)
        right = self.right.format("{}", **dict(variant.parameters))
        cases = self.cases(variant)
        if self.question is not None:
            cases = ask.announced(cases, self.question)
        return ask_each(ask, cases, partial(self.wrong, ask), right)


def judge(model: ClosedModel | Run, ends: str) -> Finding | None:
    """Search all schedules of a simulator, and return the failed result for a fault; None if there is no fault.

    `ends` is the name of the simulator's property that holds when a run has ended.
    """
    search = Search(model, MAX_STATES).run()
    result = search.result()
    if result.violations:
        return _broken(model, min(result.violations, key=lambda each: len(each.trace.actions)))
    if not result.exhausted:
        # Right answers stay far below the limit, as a test checks, so the answer is at fault.
        message = (
            f"The answers of {model.ask.name} lead to more than {MAX_STATES:,} states, far more than a right answer "
            "needs; leave out steps that change nothing."
        )
        return Finding(False, message, general="The answers lead to very many states.")
    return _endless(model, search, ends)


def _broken(model: ClosedModel | Run, violation: Violation) -> Finding:
    claim = next(each for each in model.properties() if each.name == violation.property)
    text = violation.because
    message = f"{text[0].upper()}{text[1:]} {_blame(model, violation.trace)}"
    general = f"Some schedule breaks this: {claim.sentence}"
    trace = violation.trace
    return Finding(False, message.strip(), text, claim.sentence, str(trace), len(trace.actions), general)


def _blame(model: ClosedModel | Run, trace: Trace) -> str:
    """Return a sentence with the last answers of the learner's function in a run of `model`."""
    answers: dict[str, None] = {}
    state = model.initial()
    for action in trace.actions:
        after = model.apply(state, action)
        question = model.question(state, action, after)
        if question is not None:
            answer = model.ask.with_answer(*question)
            answers.pop(answer, None)
            answers[answer] = None
        state = after
    for question in model.refused(state):
        answers[model.ask.with_answer(*question)] = None
    return f"On the way {'; '.join(list(answers)[-ANSWERS:])}." if answers else ""


def _endless(model: ClosedModel | Run, search: Search[Any], ends: str) -> Finding | None:
    """Return the failed result for the first state from which no schedule reaches the end of a run, or None."""
    claim = next(each for each in model.properties() if each.name == ends)
    before: dict[Any, list[Any]] = {search.packer.unpack(number): [] for number in search.parents}
    for state in before:
        for _, after in model.successors(state):
            before[after].append(state)
    reached = [state for state in before if claim.holds(state)]
    can_end = set(reached)
    while reached:
        for state in before[reached.pop()]:
            if state not in can_end:
                can_end.add(state)
                reached.append(state)
    stuck = next((state for state in before if state not in can_end), None)
    return None if stuck is None else _never_ends(model, stuck, search.trace_to(stuck), claim.sentence)


def _never_ends(model: ClosedModel | Run, stuck: Any, trace: Trace, sentence: str) -> Finding:
    if model.actions(stuck):
        how, blame = ("whatever happens, the run never ends", _from_there_on(model, stuck))
    else:
        how, blame = "nothing can happen any more", _blame(model, trace)
    steps = len(trace.actions)
    message = f"After {steps} steps, {how}. {blame}"
    general = "Some schedule never ends."
    return Finding(False, message.strip(), f"{how} after {steps} steps", sentence, str(trace), steps, general)


def _from_there_on(model: ClosedModel | Run, stuck: Any) -> str:
    answers: dict[str, None] = {}
    order, seen = [stuck], {stuck}
    for state in order:
        for action, after in model.successors(state):
            question = model.question(state, action, after)
            if question is not None:
                answers[model.ask.with_answer(*question)] = None
            if after not in seen:
                seen.add(after)
                order.append(after)
    return f"From there on {'; '.join(list(answers)[:ANSWERS])}." if answers else ""
