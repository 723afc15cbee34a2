"""Computes the gradebook from the records of submissions, the points given by hand and the instructor's rules.

Points are never read from a page or table that was written earlier. If the files leave a question open, the gradebook
has a doubt: a sentence that asks the instructor and says how to answer. Two students are never merged on a guess.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace as replace_fields

from labkit.grading import roster, tables
from labkit.grading.course import Course
from labkit.grading.marks import HandMarks, Mark, answer_to, together
from labkit.grading.records import ItemRecord, Record
from labkit.grading.requests import Listed, Request, is_request
from labkit.grading.roster import Member
from labkit.grading.rules import Rules
from labkit.teach.exercises.contract import Exercise


@dataclass(frozen=True)
class Policy:
    """An instructor's settings for a class: deadline, roster, points given by hand, rules, and regrade requests."""

    deadline: datetime | None = None
    members: Sequence[Member] = ()
    marks: Sequence[Mark] = ()
    rules: Rules = field(default_factory=Rules)
    requests: Sequence[Listed] = ()
    """The regrade requests in the instructor's table; those in students' own files are in the records."""


@dataclass(frozen=True)
class Score:
    """The points of one student for one exercise, and their origin, such as the grader or a person."""

    exercise: Exercise
    item: ItemRecord | None
    """The grader's result for the exercise, or None if the student has not handed in its notebook."""
    hand: HandMarks
    points: float | None
    """The points before the exercise's weight and the late penalty apply, or None while nobody has given any."""
    by_hand: bool
    """Whether a person gave the points."""
    left_out: str = ""
    """Why the exercise does not count for the student, `excused` or `dropped`; empty if it counts."""
    unsettled: bool = False
    """Whether the points are unknown because the file could not be read, or because grading itself failed."""


@dataclass
class Row:
    """One student's row in the gradebook. Students who have handed in nothing also have a row."""

    key: str
    name: str
    """The name to show, which is unique among the rows."""
    records: list[Record]
    member: Member | None = None
    asked: Sequence[Request] = ()
    """The regrade requests in all files of the student or the group, also in older ones that do not count."""
    scores: dict[str, Score] = field(default_factory=dict)
    """The student's scores, by the name of the exercise."""
    penalties: dict[str, float] = field(default_factory=dict)
    """The share of the points, from 0 to 1, that lateness costs, by notebook; "" is a file of an unknown notebook."""
    total: float = 0.0
    most: float = 0.0
    open: float = 0.0
    """The largest number of points that the student can still get for exercises that a person has yet to grade."""
    late: bool = False
    unproven: dict[str, str] = field(default_factory=dict)
    """For each notebook that may be late or not, the archive whose dates the student may have chosen."""
    unsettled: list[str] = field(default_factory=list)
    """The notebooks with points that are still unknown; while there are any, `total` is not yet the student's grade."""
    to_decide: list[Exercise] = field(default_factory=list)
    """The exercises that only a person can grade, because of a question in `Gradebook.doubts`."""
    notes: list[str] = field(default_factory=list)
    requests: dict[str, list[str]] = field(default_factory=dict)
    """The reasons of the student's regrade requests, by the name of the exercise."""

    @property
    def asking(self) -> list[str]:
        """The exercises for which the student has a regrade request that nobody has answered yet."""
        return [
            name
            for name, reasons in self.requests.items()
            if not all(map(self.scores[name].hand.has_answered, reasons))
        ]

    @property
    def id(self) -> str:
        """The student's id in the roster, or the row's key if the roster has no id."""
        return (self.member.id if self.member else "") or self.key

    @property
    def account(self) -> str:
        """The student's number or account on the learning platform, or an empty text."""
        return next((one.account for one in self.records if one.account), "")


@dataclass
class Gradebook:
    """The gradebook of a class: a row for each student, and the questions that the instructor must decide."""

    rows: list[Row]
    exercises: list[Exercise]
    """Every exercise of the notebooks that anybody has handed in."""
    missing: list[Row]
    """The rows of students in the roster who have handed in nothing; `rows` contains them as well."""
    unknown: list[Row]
    """The rows of students who have handed in but are not in the roster; empty without a roster."""
    doubts: list[str]
    """Questions that only the instructor can settle, each with the way to do so."""
    not_handed_in: dict[str, list[str]] = field(default_factory=dict)
    """For each notebook of the assignment, the students who handed in another notebook but not this one."""


def gradebook(records: Sequence[Record], course: Course, policy: Policy) -> Gradebook:
    """Compute the gradebook of a class from the grading results and the instructor's settings."""
    asked = [course.exercises[name] for name in policy.rules.asked]
    notebooks = {record.notebook for record in records}
    exercises = asked or [one for one in course.exercises.values() if one.notebook in notebooks]
    doubts: list[str] = []
    rows, missing, unknown = _rows(records, policy, doubts)
    doubts += _alike(rows)
    not_handed_in = _note_missing(rows, asked)
    _show_apart(rows)
    marks = _by_row(rows, policy.marks, doubts, "points")
    listed = _by_row(rows, policy.requests, doubts, "requests")
    for row in rows:
        _score(row, exercises, marks.get(row.key, {}), policy, doubts)
        _note_requests(row, listed.get(row.key, {}), doubts)
    decided = _decide(rows, [each for each in exercises if policy.rules.weight(each.name)])
    doubts = _doubts_of(records, decided) + _undated(rows) + doubts
    if policy.members:
        doubts += [
            f"{row.name} ({row.key}) is not in the roster; add the account to the roster, or ignore this."
            for row in unknown
        ]
    return Gradebook(rows, exercises, missing, unknown, doubts, not_handed_in)


def _note_missing(rows: Iterable[Row], asked: Sequence[Exercise]) -> dict[str, list[str]]:
    """Note in each row which notebooks of the assignment are missing.

    Returns a dict from notebook to the students who have not handed it in, but have handed in another notebook.
    """
    missing: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        there = {record.notebook for record in row.records}
        for notebook in dict.fromkeys(each.notebook for each in asked):
            if row.records and notebook not in there:
                row.notes.append(f"{notebook} is part of the assignment, and you have not handed it in.")
                missing[notebook].append(row.name)
    return dict(missing)


def _doubts_of(records: Iterable[Record], decided: Collection[tuple[str, str]]) -> list[str]:
    """Return each open question in `records` once, as a text that begins with the names of up to three students.

    `decided` has the questions that the instructor has settled, as pairs (submission's key, question).
    """
    students_of: dict[str, list[str]] = defaultdict(list)
    for record in records:
        for doubt in record.doubts:
            if (record.key, doubt) not in decided:
                students_of[doubt].append(record.student)
    return [f"{', '.join(sorted(set(students))[:3])}: {doubt}" for doubt, students in students_of.items()]


def _undated(rows: Iterable[Row]) -> list[str]:
    """Return one question for each archive whose dates decide who is late, but may be the students' own."""
    names_of: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for archive in set(row.unproven.values()):
            names_of[archive].append(row.name)
    return [
        f"{', '.join(sorted(names)[:3])}: {archive} has a date after the deadline, and whoever packed it chose the "
        "dates inside, so labkit cannot tell what is late; if you trust the dates inside, unpack the archive and name "
        "the unpacked folder; if it is one student's, name a folder that contains only this archive."
        for archive, names in sorted(names_of.items())
    ]


def _decide(rows: Iterable[Row], exercises: Sequence[Exercise]) -> set[tuple[str, str]]:
    """Return the questions that the instructor has settled by giving points, as pairs (submission's key, question).

    For example, if labkit could not read a file, it asks the instructor to get another file from the student or to give
    points by hand. A question is settled when the student (in a group, every student) has points by hand for each of
    the `exercises` that the question concerns. The exercises that still need points by hand are added to the field
    `to_decide` of the student's row.
    """
    decided: set[tuple[str, str]] = set()
    left_open: set[tuple[str, str]] = set()
    for row in rows:
        read = {record.notebook for record in row.records if record.notebook not in record.unread}
        for record in row.records:
            for doubt, names in record.settled_by.items():
                about = [
                    each
                    for each in exercises
                    if {each.name, each.notebook} & {*names} or ("" in names and each.notebook not in read)
                ]
                left = [each for each in about if not row.scores[each.name].by_hand]
                (decided if about and not left else left_open).add((record.key, doubt))
                row.to_decide += [each for each in left if each not in row.to_decide]
    return decided - left_open


def _rows(records: Sequence[Record], policy: Policy, doubts: list[str]) -> tuple[list[Row], list[Row], list[Row]]:
    """Return three lists of gradebook rows: all students, and two selections of them.

    The second list has the students of the roster who have no submission. The third has the students who are not in the
    roster; it is empty without a roster. Questions for the instructor are added to `doubts`.
    """
    by_key: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_key[record.key].append(record)
    matches = roster.match(policy.members, records)
    doubts += matches.doubts
    rows, matched = [], set()
    for number, member in enumerate(policy.members):
        keys = matches.owners.get(number, ())
        matched |= set(keys)
        handed_in = [one for key in keys for one in by_key[key]]
        own_records, notes = _newest(handed_in, doubts)
        key = member.id or (keys[0] if keys else f"roster-{number}")
        rows.append(Row(key, member.name or member.id, own_records, member, _requests(handed_in), notes=notes))
    missing = [row for row in rows if not row.records]
    unknown = [
        Row(key, group[0].student, sorted(group, key=lambda one: one.notebook), asked=_requests(group))
        for key, group in by_key.items()
        if key not in matched
    ]
    _make_unique([*unknown, *rows])
    in_order = sorted([*rows, *unknown], key=lambda row: (row.name, row.key))
    return in_order, missing, unknown if policy.members else []


def _requests(records: Iterable[Record]) -> list[Request]:
    return [request for record in records for request in record.requests]


def _make_unique(rows: Iterable[Row]) -> None:
    # One student's id in the roster may be the name of another student's folder, and both would be keys.
    used: set[str] = set()
    for row in rows:
        number, key = 1, row.key
        while row.key in used:
            number += 1
            row.key = f"{key}#{number}"
        used.add(row.key)


def _newest(records: Sequence[Record], doubts: list[str]) -> tuple[list[Record], list[str]]:
    """Return the newest result for each notebook of a student or group, and a note on each older result.

    If the date does not say which of two is the newest, a question for the instructor is added to `doubts`.
    """
    chosen: dict[str, Record] = {}
    notes = []
    for record in sorted(records, key=lambda one: (datetime.fromisoformat(one.submitted), one.key)):
        if (earlier := chosen.get(record.notebook)) is not None:
            notes.append(
                f"{record.file[:300]} counts for the whole group; {earlier.file[:300]} is older and does not count."
            )
            doubt = (
                f"{earlier.file[:300]} and {record.file[:300]} are of one group and have the date of their archive, "
                "and the second one counts; if the first should count, unpack the archive and move the second away."
            )
            is_open = record.dated_by and (record.dated_by, record.submitted) == (earlier.dated_by, earlier.submitted)
            if is_open and record.sha256 != earlier.sha256 and doubt not in doubts:
                doubts.append(doubt)
        chosen[record.notebook] = record
    return [chosen[name] for name in sorted(chosen)], notes


def _alike(rows: Sequence[Row]) -> list[str]:
    """For each name that several students have, return a question for the instructor: are they one student?

    Until the instructor answers, each of these students has a row.
    """
    named: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        named[roster.same_name(row.name)].append(row)
    return [
        f"{rows_[0].name}: {len(rows_)} students have this name ({', '.join(_apart(row) for row in rows_)}), "
        "and each has a row. If two of them are one person, give both the same folder or account, or list their ids "
        "in --roster."
        for name, rows_ in sorted(named.items())
        # Nothing is open if the roster identifies all of them by an id or account, and not only by name.
        if len(rows_) > 1 and not all(row.member and (row.member.id or row.member.accounts) for row in rows_)
    ]


def _show_apart(rows: Sequence[Row]) -> None:
    """If several students have the same name, add an id, account or key to each of their displayed names."""
    names = Counter(_as_seen(row.name) for row in rows)
    labels = Counter((_as_seen(row.name), _apart(row)) for row in rows)
    for row in rows:
        name = _as_seen(row.name)
        if names[name] > 1:
            label = _apart(row) if labels[name, _apart(row)] == 1 else row.key
            row.name = f"{row.name} ({label})"


def _as_seen(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).split())


def _apart(row: Row) -> str:
    """Return a text that distinguishes a student from others of the same name: an id or account, otherwise the key."""
    record = row.records[0] if row.records else None
    account = (row.member.id if row.member else "") or (record.account if record else "")
    return account or ascii(row.key)


_Line = TypeVar("_Line", bound=Mark | Listed)


def _note_requests(row: Row, listed: Mapping[str, Sequence[Listed]], doubts: list[str]) -> None:
    """Add a student's regrade requests to the row: those in the student's files, and those that an instructor listed.

    `listed` maps exercises to lines of the instructor's table. Requests that nobody has answered are added to `doubts`.
    A request for an exercise that does not count is added only to `doubts`.
    """
    asked = [(each.exercise, each.why) for each in row.asked]
    asked += [(name, each.why) for name, lines in listed.items() for each in lines]
    for name, why in dict.fromkeys(asked):
        if name in row.scores:
            row.requests.setdefault(name, []).append(why)
        else:
            doubts.append(
                f"{row.name} requests a regrade, but names no exercise that counts ({f'{name} {why}'.strip()}); ask "
                "the student which exercise it is."
            )
    doubts += [
        f"{row.name} requests a regrade of {name}: {' '.join(row.requests[name])} Answer in a CSV file of points "
        f"(--marks), with {answer_to(row.requests[name])} in the column answers."
        for name in row.asking
    ]


def _by_row(
    rows: Sequence[Row], marks: Iterable[_Line], doubts: list[str], what: str
) -> dict[str, dict[str, list[_Line]]]:
    """Find the student of each line of a CSV file; return a dict from row key to a dict from exercise to lines.

    `marks` are the lines. If a line fits no student, or several students, a question for the instructor is added to
    `doubts`; `what` is the word in this question for the line's contents: `points` or `requests`.
    """
    called: dict[str, set[str]] = defaultdict(set)
    own: dict[str, set[str]] = defaultdict(set)
    group_rows: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name in {row.key, row.id, tables.printable(row.key), tables.printable(row.id)}:  # as tables show them
            own[name].add(row.key)
        for record in row.records:
            group_rows[record.key].add(row.key)
        member = row.member
        words = [row.name, *(one.account for one in row.records)]
        words += [*member.ids, member.email, member.name] if member else []
        for word in filter(None, words):
            called[roster.same_name(word)].add(row.key)
    by_row: dict[str, dict[str, list[_Line]]] = defaultdict(lambda: defaultdict(list))
    for mark in marks:
        word = mark.student.removeprefix("'")
        is_group = word in group_rows and word not in own
        names = roster.same_name(word)
        keys = own.get(word) or group_rows.get(word) or called.get(names, set())
        if is_group or len(keys) == 1:
            for key in keys:
                by_row[key][mark.exercise].append(mark)
        else:
            candidates = "no student has" if not keys else f"{len(keys)} students have"
            doubts.append(
                f"{mark.place}: {candidates} the name or id {mark.student}, so these {what} do not count; "
                "write an id from grades.csv or from by_hand/marks.csv."
            )
    return by_row


def _score(
    row: Row, exercises: Sequence[Exercise], marks: Mapping[str, Sequence[Mark]], policy: Policy, doubts: list[str]
) -> None:
    """Compute the scores, late penalties and sums of one student's row; questions for the instructor go to `doubts`."""
    items = {item.name: item for record in row.records for item in record.items}
    _note_penalties(row, exercises, policy, doubts)
    unread = _unread(row, exercises)
    for exercise in exercises:
        score = _points(exercise, items.get(exercise.name), marks.get(exercise.name, ()), policy.rules)
        is_unread = exercise.name in unread and not (score.by_hand or score.left_out)
        if is_unread or (score.item is not None and score.item.status == "not graded" and score.points is None):
            score = replace(score, points=None, unsettled=not score.left_out)
        row.scores[exercise.name] = score
        if (score.points or 0) > exercise.points:
            doubts.append(
                f"{score.hand.place}: {score.hand.points:g} points for {exercise.name}, but the exercise has only "
                f"{exercise.points}; they count in full, but Moodle skips a grade above its maximum."
            )
        elif (score.hand.points or 0) > exercise.points and score.by_hand:
            doubts.append(
                f"{score.hand.place}: the parts of {exercise.name} add up to {score.hand.points:g} points, but only "
                f"the {exercise.points} of the exercise count; correct them, or write bonus after the points."
            )
    _drop(row, policy.rules)
    row.total, row.most = sums(row, exercises, policy.rules)
    left_out = [f"{name} ({score.left_out})" for name, score in row.scores.items() if score.left_out]
    if left_out and len(left_out) == len(row.scores):
        doubts.append(
            f"{row.name}: no exercise counts, so the total is 0; excuse the student from fewer exercises, or give "
            "points by hand."
        )
    elif left_out:
        row.notes.append(
            f"Not counted: {', '.join(left_out)}. The points of the other exercises were scaled, so the maximum is "
            f"still {row.most:g} points."
        )
    row.unsettled = _unsettled(row, policy.rules)
    row.open = sum(
        score.exercise.points * policy.rules.weight(name)
        for name, score in row.scores.items()
        if score.points is None and not score.left_out and (score.item is None or score.item.status == "by hand")
    )


def _note_penalties(row: Row, exercises: Iterable[Exercise], policy: Policy, doubts: list[str]) -> None:
    """Find the late penalty of each notebook, also of those whose answers may be in a file that nobody could read."""
    for record in row.records:
        if is_request(record.file):
            continue  # it contains no answers, and naturally comes after the deadline
        for notebook, when in ((record.notebook, record.submitted), *record.answered_at.items()):
            share = _lateness(row, replace_fields(record, submitted=when), policy, doubts)
            if share:
                row.penalties[notebook] = max(share, row.penalties.get(notebook, 0.0))
    left = sorted({each.notebook for each in exercises} - {record.notebook for record in row.records})
    if share := row.penalties.pop("", 0.0):
        # This file may answer every notebook of which the student has no other file.
        row.penalties |= {name: max(share, row.penalties.get(name, 0.0)) for name in (["", *left] if left else ())}
    row.notes += [
        f"{name} was handed in late; {tables.amount(100 * row.penalties[name])} % of its points are deducted."
        for name in left
        if name in row.penalties
    ]


def _unread(row: Row, exercises: Iterable[Exercise]) -> set[str]:
    """Return the exercises whose points are unknown, because nobody could read the file or knows whether it is late."""
    unread = {name for record in row.records for name in record.unread} | (row.unproven.keys() & row.penalties.keys())
    read = {record.notebook for record in row.records} - unread
    return {each.name for each in exercises if each.notebook in unread or ("" in unread and each.notebook not in read)}


def _unsettled(row: Row, rules: Rules) -> list[str]:
    """Return the notebooks whose points are still unknown, and mention them in a note in the student's row."""
    scores = [each for name, each in row.scores.items() if each.unsettled and rules.weight(name)]
    notebooks = list(dict.fromkeys(each.exercise.notebook for each in scores))
    if notebooks:
        row.notes.append(f"Not settled yet: {', '.join(notebooks)}. Your instructor decides about these points.")
    return notebooks


def sums(row: Row, exercises: Iterable[Exercise], rules: Rules) -> tuple[float, float]:
    """Return a student's points for these exercises, and the maximum number of points.

    An excused or dropped exercise counts as the average of the student's other exercises, so the maximum is the same
    for all students.
    """
    earned = counted = most = 0.0
    for exercise in exercises:
        score, weight = row.scores[exercise.name], rules.weight(exercise.name)
        most += exercise.points * weight
        if not score.left_out:
            counted += exercise.points * weight
            earned += (score.points or 0) * weight * (1 - row.penalties.get(exercise.notebook, 0.0))
    return (round(earned * most / counted, 4) if counted else 0.0), most


def _drop(row: Row, rules: Rules) -> None:
    """Drop the exercises in which the student has the smallest share of the possible points.

    If two shares are equal, drop the exercise with more possible points.
    """
    counted = [
        score
        for name, score in row.scores.items()
        if not score.left_out and score.points is not None and score.exercise.points * rules.weight(name)
    ]

    def share(score: Score) -> tuple[float, float]:
        most = score.exercise.points
        kept = 1 - row.penalties.get(score.exercise.notebook, 0.0)
        return (score.points or 0) * kept / most, -most * rules.weight(score.exercise.name)

    for score in sorted(counted, key=share)[: rules.lowest]:
        row.scores[score.exercise.name] = replace(score, left_out="dropped")


def _points(exercise: Exercise, item: ItemRecord | None, marks: Sequence[Mark], rules: Rules) -> Score:
    """Return the score for one exercise: points given by hand, otherwise partial credit or the grader's points."""
    hand = together(marks, rules)
    if hand.excused:
        return Score(exercise, item, hand, None, by_hand=True, left_out="excused")
    if hand.points is not None:
        points = hand.points if hand.bonus else min(hand.points, float(exercise.points))
        return Score(exercise, item, hand, points, by_hand=True)
    if item is None:
        return Score(exercise, None, hand, 0.0, by_hand=False)
    part = rules.partial.get(exercise.name)
    visible, count = item.public
    if part and item.status == "wrong" and count and visible == count:
        return Score(exercise, item, hand, part, by_hand=False)
    return Score(exercise, item, hand, item.points, by_hand=False)


def _lateness(row: Row, record: Record, policy: Policy, doubts: list[str]) -> float:
    """Return the share of the points (0 to 1) that a submission loses for being late; note the lateness in the row.

    A submission that is late by an unknown time loses the share for one day. If this share is not 0, a question for the
    instructor is added to `doubts`.
    """
    deadline = policy.deadline
    own = row.member is not None and (row.member.deadline or row.member.extension)
    if row.member is not None:
        deadline = row.member.deadline or deadline
        if deadline is not None and row.member.extension is not None:
            deadline += row.member.extension
    when = datetime.fromisoformat(record.submitted)
    if deadline is not None and record.dated:
        over = when > deadline or (record.marked_late and not own)
        row.late |= over
        share = policy.rules.share_taken(when, deadline) if over else 0.0
        if over and record.dated_by:
            row.unproven[record.notebook] = record.dated_by
        if share or not (over and record.marked_late):
            return share
    elif not (record.marked_late or (record.late and policy.deadline is None)):
        return 0.0
    row.late = True
    share = min(policy.rules.percent_a_day, policy.rules.most_percent) / 100
    if share:
        doubts.append(
            f"{row.name}: {record.file[:300]} is late by an unknown time, so the penalty for one day is deducted. If "
            "that is wrong, give the points by hand."
        )
    return share
