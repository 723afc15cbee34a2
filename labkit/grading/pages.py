"""Computes the values that the HTML templates of students' pages and the instructor's summary show.

About a hidden variant of a question, a learner reads only whether the answer passed and which guarantee it violates.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from urllib.parse import quote

from labkit.grading import records
from labkit.grading.course import Course
from labkit.grading.marks import BONUS, answer_to
from labkit.grading.records import ItemRecord, Record
from labkit.grading.rules import Rules
from labkit.grading.scoring import Gradebook, Policy, Row, Score
from labkit.grading.similarity import SAME_FILE, pairs
from labkit.grading.tables import amount, printable
from labkit.teach.exercises.contract import Exercise

_COMMON = 5


def page_name(row: Row) -> str:
    """Return the file name of the HTML feedback page of the student in this gradebook row."""
    key = row.key if row.member is not None or not row.records else row.records[0].key
    return f"{records.file_name(key, 'feedback')}.html"


def points(score: Score) -> str:
    """Return the points of a score as text: a number, `excused`, or an empty text while they are unknown."""
    if score.left_out == "excused":
        return score.left_out
    return "" if score.points is None else amount(score.points)


def feedback(row: Row, policy: Policy) -> dict[str, object]:
    """Return the values for the HTML template of a student's feedback page, as a dict from name to value."""
    return {"row": row, "notebooks": [_notebook(record, row, policy) for record in row.records]}


def _notebook(record: Record, row: Row, policy: Policy) -> dict[str, object]:
    taken = row.penalties.get(record.notebook, 0.0)
    scores = [row.scores[item.name] for item in record.items if item.name in row.scores]
    return {
        "record": record,
        "late": row.late and (record.late or record.marked_late or bool(taken)),
        "taken": f"{amount(100 * taken)} %" if taken else "",
        "items": [_item(score, policy, row.requests.get(score.exercise.name, ())) for score in scores],
    }


def _item(score: Score, policy: Policy, requests: Sequence[str]) -> dict[str, object]:
    """Return one exercise's values for the feedback page. Of hidden variants, it shows only how many were passed."""
    item = score.item or ItemRecord(score.exercise.name, score.exercise.points)
    judged = item.status in {"right", "wrong", "failed"} and bool(item.public[1])
    weight = policy.rules.weight(item.name)
    return {
        "score": score,
        "item": item,
        "weight": "" if weight == 1 else amount(weight),
        "status": _shown_status(score, item),
        "shown": "" if score.by_hand and item.status == "by hand" else item.shown,
        "public": f"{item.public[0]} of {item.public[1]}" if judged else "",
        "hidden": f"{item.hidden[0]} of {item.hidden[1]}" if judged and item.hidden[1] else "",
        "asked": requests,
    }


def _shown_status(score: Score, item: ItemRecord) -> str:
    if score.left_out or score.by_hand:
        return score.left_out or "graded by hand"
    return "not settled" if score.unsettled and item.status != "not graded" else item.status


def texts(book: Gradebook) -> dict[Exercise, list[Row]]:
    """Return a dict from each free-text exercise to the gradebook rows of the students who wrote a text."""
    writers: dict[Exercise, list[Row]] = {}
    for exercise in book.exercises:
        for row in book.rows:
            item = row.scores[exercise.name].item
            if exercise.by_hand and item is not None and item.written:
                writers.setdefault(exercise, []).append(row)
    return writers


def reading(written: Mapping[Exercise, Sequence[Row]], book: Gradebook, rules: Rules) -> dict[str, object]:
    """Return the values for the page on which a person grades the texts `written`, and answers regrade requests."""
    return {
        "course": ", ".join(dict.fromkeys(one.notebook for one in written)),
        "questions": [
            {
                "exercise": exercise,
                "rubric": rules.rubric.get(exercise.name, {}),
                "texts": [_text(row, row.scores[exercise.name], rules) for row in rows],
            }
            for exercise, rows in written.items()
        ],
        "requests": [_request(row, row.scores[name], why) for row in book.rows for name, why in row.requests.items()],
    }


def _text(row: Row, score: Score, rules: Rules) -> dict[str, object]:
    parts = rules.rubric.get(score.exercise.name) or {"": float(score.exercise.points)}
    given = dict(score.hand.parts) if "" not in parts else {"": score.hand.points}
    values = {part: _written(given.get(part), most, score) for part, most in parts.items()}
    if score.left_out == "excused":
        values = dict.fromkeys(parts, score.left_out)
    fields = [{"part": part, "of": amount(most), "value": values[part]} for part, most in parts.items()]
    return _piece(row, score) | {"written": score.item.written if score.item else "", "fields": fields}


def _written(points: float | None, most: float, score: Score) -> str:
    """Return points as a person enters them in a CSV file: followed by `bonus` if the person gave more than `most`."""
    if points is None:
        return ""
    return f"{amount(points)} {BONUS}" if score.hand.bonus and points > most else amount(points)


def _request(row: Row, score: Score, why: Sequence[str]) -> dict[str, object]:
    item = score.item or ItemRecord(score.exercise.name, score.exercise.points)
    most, answered = float(score.exercise.points), score.exercise.name not in row.asking
    value = _written(score.hand.points, most, score)
    return _piece(row, score) | {
        "exercise": score.exercise.name,
        "title": score.exercise.title,
        "most": amount(most),
        "why": why,
        "reason": item.reason,
        "code": item.written or item.code,
        "answers": answer_to(why),
        "answered": answered,
        "comment": "\n".join(score.hand.replies) if answered else "",
        # Filled in from the answer, so that the next file from this page does not undo a later correction.
        "fields": [{"part": "", "of": amount(most), "value": value if answered else ""}],
    }


def _piece(row: Row, score: Score) -> dict[str, object]:
    return {
        "student": row.name,
        "key": printable(row.key),
        "id": printable(row.id),
        "points": points(score),
        "comments": score.hand.comments,
        "comment": "\n".join(score.hand.whole),
    }


def overview(kept: Sequence[Record], book: Gradebook, course: Course, policy: Policy) -> dict[str, object]:
    """Return the values for the HTML template of the instructor's summary; `kept` are all grading results."""
    items: dict[str, list[ItemRecord]] = {one.name: [] for one in book.exercises}
    for record in kept:
        for item in record.items:
            items.setdefault(item.name, []).append(item)
    return {
        "course": policy.rules.title or course.name,
        "book": book,
        "submissions": len(kept),
        "late": sum(row.late for row in book.rows),
        "seeds": sorted({record.seed for record in kept}),
        "levels": Counter(record.isolation.level for record in kept),
        "unsafe": sum(record.isolation.level == "plain" for record in kept),
        "missing": {level: why for record in kept for level, why in record.isolation.missing.items()},
        "versions": {name: version for record in kept for name, version in record.versions.items()},
        "seconds": _times([record.seconds for record in kept]),
        "limits": Counter(limit for record in kept for limit in record.limits_hit).most_common(),
        "not_graded": [record.student for record in kept if not record.graded()],
        "rows": [_line(row, book) for row in book.rows],
        "alike": side_by_side(kept, book),
        "items": [_distribution(name, all_of_it, course.exercises.get(name)) for name, all_of_it in items.items()],
        "totals": sorted(Counter(row.total for row in book.rows if not row.unsettled).items(), reverse=True),
        "unsettled": sum(bool(row.unsettled) for row in book.rows),
        "noted": [(record.student, record.notebook, note) for record in kept for note in record.notes],
    }


def _line(row: Row, book: Gradebook) -> dict[str, object]:
    """Return the values in one student's line of the instructor's summary, as a dict from name to value."""
    return {
        "row": row,
        "page": f"feedback/{quote(page_name(row))}" if row.records else "",
        "points": [(points(row.scores[one.name]), _status(row.scores[one.name])) for one in book.exercises],
        "requests": [(name, why, name not in row.asking) for name, why in row.requests.items()],
        "executed": [
            (record.notebook, f"executed/{quote(record.executed)}") for record in row.records if record.executed
        ],
    }


def _status(score: Score) -> str:
    if score.by_hand:
        return "by-hand"
    if score.unsettled:
        return "not-settled"
    return "not-attempted" if score.item is None else score.item.status.replace(" ", "-")


def side_by_side(kept: Sequence[Record], book: Gradebook) -> list[dict[str, object]]:
    """Return the values for the page of similar answers: for each pair of students, the names and the similar code."""
    names: dict[str, list[str]] = {}
    for row in book.rows:
        for record in row.records:
            names.setdefault(record.key, []).append(row.name)
    codes = {
        (record.key, record.notebook, item.name): item.code for record in kept for item in record.items if item.code
    }
    answers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, notebook, exercise in codes:
        answers[key, notebook].append(exercise)
    return [
        {
            "students": [", ".join(dict.fromkeys(names.get(key, [key]))) for key in (pair.first, pair.second)],
            "matches": [
                {
                    "what": match.what,
                    "where": match.notebook,
                    "shared_by": match.shared_by,
                    "codes": [
                        [codes.get((key, match.notebook, exercise), "") for key in (pair.first, pair.second)]
                        for exercise in (
                            answers[pair.first, match.notebook] if match.what == SAME_FILE else [match.what]
                        )
                    ],
                }
                for match in pair.matches
            ],
        }
        for pair in pairs(kept)
    ]


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "no code was run"
    return f"median {median(seconds):.1f} s, longest {max(seconds):.1f} s, {sum(seconds):.0f} s in total"


def _distribution(name: str, items: Sequence[ItemRecord], exercise: Exercise | None) -> Mapping[str, object]:
    statuses = Counter(item.status for item in items)
    failures = [item.reason for item in items if item.status in {"wrong", "failed", "not graded"}]
    reasons = Counter(re.sub(r"\d+", "#", reason)[:200] for reason in failures)  # numbers do not distinguish reasons
    return {
        "name": name,
        "title": exercise.title if exercise else name,
        "counts": [(status, statuses[status]) for status in _STATUSES if statuses[status]],
        "share": round(100 * statuses["right"] / len(items)) if items else 0,
        "reasons": reasons.most_common(_COMMON),
        "seconds": _times([item.seconds for item in items if item.questions]),
    }


_STATUSES = ("right", "wrong", "failed", "not attempted", "by hand", "not graded")
