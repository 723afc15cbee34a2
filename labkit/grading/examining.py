"""Runs a submitted notebook in sandboxes until each of its exercises has been graded.

If a cell ends the kernel, hangs or prints too much, only the exercise of this cell loses its points: the notebook runs
again in a new sandbox without the cell, and the judges question the other answers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from labkit.core.errors import GradingError, MissingSolution
from labkit.grading.asking import VALUE, RemoteAnswer
from labkit.grading.marking import JudgeOf, KnownAnswer, failed, judge_here, mark, not_attempted, not_graded
from labkit.grading.order import Patience
from labkit.grading.preparing import ChosenCell, PreparedNotebook
from labkit.grading.records import ItemRecord
from labkit.grading.sandbox.inside.jobs import Limits
from labkit.grading.sandbox.sandbox import Run, RunEnd, Sandbox
from labkit.grading.spark_judging import SparkJudge
from labkit.teach.exercises.contract import AnswerFailed, Exercise, Kind, Variant

Hidden = Callable[[Exercise], Sequence[Variant]]
"""Returns the hidden variants of an exercise."""
_OURS = {"no sandbox", "failed"}
"""The ways in which a run can end by the grader's own fault, not by that of the submitted code."""
_SHOWN = {
    "timeout": "ran too long",
    "dead": "ended the kernel",
    "output": "printed or showed too much",
    "memory": "used too much memory",
    "processes": "started too many processes",
    "too long": "was not reached, because the notebook as a whole ran too long",
}


@dataclass
class ExaminationResult:
    """The outcome of grading one notebook: results of its exercises, notes, exceeded limits, the executed notebook."""

    items: dict[str, ItemRecord] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    limits_hit: list[str] = field(default_factory=list)
    out_of_time: bool = False
    """Whether an answer took too long, or was not reached in time, which a busy machine may have caused."""
    executed: str | None = None


@dataclass
class Examination:
    """Grades one notebook. If a cell ends the run in the sandbox, the notebook runs again without this cell."""

    prepared: PreparedNotebook
    hidden: Hidden
    sandbox: Sandbox
    patience: Patience
    spark: SparkJudge
    """The judge of the exercises that need Spark."""
    restarted: Callable[[], Sandbox]
    """Returns a second sandbox, whose Python has another hash seed (`PYTHONHASHSEED`)."""
    result: ExaminationResult = field(default_factory=ExaminationResult)
    without: set[int] = field(default_factory=set)
    """The numbers of the cells that are left out of the next run."""
    later: dict[str, KnownAnswer] = field(default_factory=dict)
    """By exercise, a constant that the sandbox has returned and that is judged on Spark after the last run."""
    replies: dict[str, Mapping[bytes, bytes]] = field(default_factory=dict)
    """By exercise, the replies of each function that earned points; a second run must give the same replies."""
    deadline: float = 0.0
    """The time (of `time.monotonic`) by which the submission must have answered; the judges' own time extends it."""

    def run(self) -> ExaminationResult:
        """Grade every attempted exercise of the notebook. Raises `GradingError` if no sandbox starts."""
        if self.prepared.attempted:
            self.sandbox.wait_until_ready()
        self.deadline = time.monotonic() + self.sandbox.limits.total_seconds
        while left := self._left():
            names = [exercise.answer for exercise in left]
            with self.sandbox.run(self.prepared.notebook(self.without), names, self.deadline) as run:
                ended = run.until_cell(len(self.prepared.cells) - len(self.without))
                if ended is not None:
                    self._blame(ended, left)
                else:
                    self._ask(run, left)
        self._restart()
        for exercise in self.prepared.attempted:
            if exercise.name in self.later:
                answer = self.later[exercise.name]
                variants = [*exercise.public, *self.hidden(exercise)]
                self.spark.together(exercise, answer, variants)
                self._mark(exercise, answer, self.spark)
        return self.result

    def _restart(self) -> None:
        """Run the notebook again in another process, and fail each function whose replies differ there.

        Such a function may depend on Python's `hash` of strings, so it would also fail when a real job restarts after a
        crash. If a cell ends this run, for example by killing its process, only the exercise of this cell fails.
        """
        asked = [one for one in self.prepared.attempted if one.name in self.replies]
        if not asked:
            return
        sandbox, without = self.restarted(), set(self.without)
        sandbox.wait_until_ready()
        seconds = sandbox.limits.total_seconds
        # Functions that do not reply are asked in one more run, because the machine may have been busy.
        asked = self._ask_again(asked, without, time.monotonic() + seconds, is_last=False)
        deadline = time.monotonic() + seconds
        while asked:
            asked = self._ask_again(asked, without, deadline, is_last=True)

    def _ask_again(
        self, asked: Sequence[Exercise], without: set[int], deadline: float, *, is_last: bool
    ) -> list[Exercise]:
        """Run the notebook in a new process, and repeat earlier questions to the functions of the exercises `asked`.

        The cells whose indices are in `without` are not run. Returns the exercises that have not replied, so that they
        have to be asked again. With `is_last`, an exercise without a reply fails instead; if the run ends before all
        cells are executed, `_blame_again` decides which exercises fail and which are returned.
        """
        silent = []
        with self.restarted().run(
            self.prepared.notebook(without), [exercise.answer for exercise in asked], deadline
        ) as run:
            ended = run.until_cell(len(self.prepared.cells) - len(without))
            if ended is not None:
                _need_start(ended)
                return self._blame_again(ended, asked, without) if is_last else [*asked]
            for exercise, connection in zip(asked, run.answers, strict=True):
                answer = RemoteAnswer(connection, deadline, self.patience)
                try:
                    answer.repeat_after_restart(self.replies[exercise.name], exercise.same)
                except (AnswerFailed, MissingSolution) as error:
                    if not is_last and answer.lost is not None:
                        silent.append(exercise)
                    else:
                        kind = getattr(error, "kind", "gave no answer after a restart")
                        failed(self.result.items[exercise.name], f"{exercise.answer}: {error}", kind)
                connection.close()
        return silent

    def _blame_again(self, ended: RunEnd, asked: Sequence[Exercise], without: set[int]) -> list[Exercise]:
        """Mark the exercise whose cell broke off the notebook's second run as failed; return the others in `asked`.

        The index of this cell is added to `without`, the indices of the cells that are not run. If no single cell broke
        the run off, all exercises in `asked` are marked as failed, and the result is empty.
        """
        cell = self._leave_out(ended, without, " after a restart")
        for exercise in asked:
            if cell is None or cell.exercise == exercise.name:
                reason = f"{exercise.answer}: the second run of its notebook {_SHOWN[ended.how]}"
                failed(self.result.items[exercise.name], reason, _SHOWN[ended.how])
        return [] if cell is None else [exercise for exercise in asked if exercise.name != cell.exercise]

    def _left(self) -> list[Exercise]:
        left = [
            one for one in self.prepared.attempted if one.name not in self.result.items and one.name not in self.later
        ]
        # Free texts first, then constants. Functions come last, because a called function sees hidden questions and
        # could pass them on to other answers.
        return sorted(left, key=lambda one: (is_function(one), not one.by_hand))

    def _blame(self, ended: RunEnd, left: Sequence[Exercise]) -> None:
        """Mark the exercise whose cell ended the run as failed, and leave this cell out of the next run.

        If no single cell ended the run, mark all exercises in `left` as failed.
        """
        _need_start(ended)
        self.result.limits_hit.append(ended.how)
        self.result.out_of_time |= ended.how == "too long"
        cell = self._leave_out(ended, self.without)
        for exercise in left:
            if cell is None:
                self._failed(exercise, f"its cell {_SHOWN[ended.how]}", _SHOWN[ended.how])
            elif cell.exercise == exercise.name:
                self._failed(exercise, _at_length(ended.how, self.sandbox.limits), _SHOWN[ended.how])

    def _leave_out(self, ended: RunEnd, without: set[int], when: str = "") -> ChosenCell | None:
        """Return the cell that ended the run, and add its index to `without`. Return None if no single cell ended it.

        If the cell belongs to no exercise, add a note on it; `when` is a phrase in this note (" after a restart").
        """
        numbers = self.prepared.numbers(without)
        if ended.how == "too long" or not 0 <= ended.at < len(numbers):
            return None
        without.add(numbers[ended.at])
        cell = self.prepared.cells[numbers[ended.at]]
        if cell.exercise is None:
            words = f"{_SHOWN[ended.how]}{when}"
            self.result.notes.append(f"A cell that belongs to no exercise {words}, so it was left out.")
        return cell

    def _failed(self, exercise: Exercise, reason: str, kind: str) -> None:
        item = self.result.items[exercise.name] = ItemRecord(exercise.name, exercise.points)
        failed(item, reason, kind)

    def _ask(self, run: Run, left: Sequence[Exercise]) -> None:
        """Grade the answers of a running notebook one by one, until all are graded or the sandbox has ended."""
        for number, (exercise, connection) in enumerate(zip(left, run.answers, strict=True)):
            begun = time.monotonic()
            answer = RemoteAnswer(connection, self.deadline, self.patience)
            if not answer.greet():
                if number == 0:
                    self._unreachable(exercise, run)
                return
            if exercise.needs_spark:
                self._keep(exercise, answer)
            else:
                self._mark(exercise, answer, judge_here)
            self.deadline += time.monotonic() - begun - answer.waited
            connection.close()
            if (ended := run.ended()) is not None:
                self.result.limits_hit.append(ended.how)
                return
        self.result.executed = run.executed()

    def _unreachable(self, exercise: Exercise, run: Run) -> None:
        """Mark an exercise as failed because the kernel no longer replies: it exceeded a limit, or it is dead."""
        ended = run.ended()
        how = ended.how if ended else "too long" if time.monotonic() >= self.deadline else "dead"
        self.result.limits_hit.append(how)
        self.result.out_of_time |= ended is None
        self._failed(
            exercise, "the judge could not ask it, because earlier code ended or broke the kernel", _SHOWN[how]
        )

    def _keep(self, exercise: Exercise, answer: RemoteAnswer) -> None:
        try:
            self.later[exercise.name] = KnownAnswer(answer.value())
        except (MissingSolution, AnswerFailed):
            # The judge asks again, gets the same failure, and records its reason.
            self._mark(exercise, answer, judge_here)

    def _mark(self, exercise: Exercise, answer: RemoteAnswer | KnownAnswer, judge: JudgeOf) -> None:
        try:
            item = mark(exercise, answer, self.hidden(exercise), judge)
        except GradingError as error:
            item = ItemRecord(exercise.name, exercise.points)
            not_graded(item, str(error))
        if item.points and isinstance(answer, RemoteAnswer) and VALUE not in answer.replies:
            self.replies[exercise.name] = answer.replies
        trouble = self.prepared.troubles.get(exercise.name, "")
        if trouble and item.status == "failed":
            # `trouble` comes from the learner's own text, so it reveals nothing hidden and may be shown.
            item.reason, item.shown = f"{item.reason}. {trouble}", trouble
        self.result.items[exercise.name] = item
        if "took too long" in item.shown:
            self.result.limits_hit.append(f"{exercise.name}: time")
            self.result.out_of_time = True


def _need_start(ended: RunEnd) -> None:
    """Raise `GradingError` if the run ended by the grader's fault and not by the learner's."""
    if ended.how in _OURS or (ended.at < 0 and ended.how == "dead"):
        raise GradingError(f"The sandbox did not start: {ended.because or ended.how}.")


def is_function(exercise: Exercise) -> bool:
    """Return whether the answer to an exercise is a function, which the judge calls."""
    return not exercise.by_hand and exercise.kind not in {Kind.PREDICT, Kind.EXPLAIN}


def _at_length(how: str, limits: Limits) -> str:
    exact = {
        "timeout": f"its cell ran longer than {limits.cell_seconds:g} seconds",
        "output": f"its cell and those before it printed or showed more than {limits.output // 1024**2} MB",
    }
    return exact.get(how, f"its cell {_SHOWN[how]}")


def without_answer(exercise: Exercise, why: str) -> ItemRecord:
    """Return the result of an exercise that the learner has not attempted: 0 points, with the reason `why`."""
    item = ItemRecord(exercise.name, exercise.points)
    not_attempted(item, why)
    return item
