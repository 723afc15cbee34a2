"""Implements `labkit grade`, apart from what it prints: grades the submissions and writes the gradebook."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from labkit.grading import marks, outputs, requests, roster, rules
from labkit.grading.batch import Done, Tell, on_spark, run
from labkit.grading.course import Course, load
from labkit.grading.gradebook import BY_HAND, keys_called, write_book
from labkit.grading.order import SHARDS, Order
from labkit.grading.records import Record
from labkit.grading.scoring import Gradebook, Policy
from labkit.grading.shards import folder_of
from labkit.grading.submissions import check


@dataclass(frozen=True)
class Graded:
    """The result of `labkit grade`: how many submissions were graded, their stored results, and the gradebook."""

    done: Done
    records: list[Record] = field(default_factory=list)
    book: Gradebook | None = None
    """The gradebook, or None for a shard (one part of the submissions), for which no table is written."""


def grade(order: Order, tell: Tell) -> Graded:
    """Grade every submission that has no valid stored result, and write grades.csv and all HTML pages.

    Raises `InvalidInput` for unusable options or files, and `GradingError` if no sandbox works. On Spark it also raises
    `JobFailed` and `ServiceUnavailable`.
    """
    check(order.given)
    course, options = load(order.course), class_options(order.out, order.about_class())
    policy = class_policy(order.out, options, course)
    keys = [key for word in order.only for key in keys_called(order.out, course, policy, word)]
    order = replace(order, only=keys, options=options, deadline=policy.deadline, asked=policy.rules.asked)
    if order.master is not None:
        order = on_spark(order, order.master, order.shards or SHARDS)
    done = run(order, tell)
    if order.shard is not None:
        return Graded(done)
    if order.master is not None:
        shutil.rmtree(folder_of(order.out), ignore_errors=True)  # `run` has copied the shards' results from there
    records, book = write_book(order.out, course, policy)
    return Graded(done, records, book)


NONE = "none"
"""The word that a user gives as an option's value, as in `--roster none`, to forget the value stored before."""


def class_options(out: Path, chosen: Mapping[str, str | None]) -> dict[str, str]:
    """Return the options that describe the class, such as the roster's path, as a dict from option name to value.

    The options of this command, `chosen`, replace those that an earlier command stored in the folder `out`. The value
    `none` removes an option.
    """
    before = outputs.remembered(out)
    now = before | {name: value for name, value in chosen.items() if value is not None}
    return {name: value for name, value in now.items() if value != NONE}


def class_policy(out: Path, chosen: Mapping[str, str], course: Course) -> Policy:
    """Read roster, points by hand, requests and rules from their files. Raises `InvalidInput` for an unusable file.

    Points in the files named with --marks replace points in the CSV files of the output folder.
    """
    named = [Path(path) for path in chosen.get("marks", "").split("\n") if path]
    templates = marks.templates(out / BY_HAND)
    named = [path for path in named if not any(path.exists() and path.samefile(one) for one in templates)]
    class_rules = rules.read(Path(chosen["rules"]), course) if "rules" in chosen else rules.Rules()
    due = chosen.get("deadline")
    return Policy(
        class_rules.deadline if due is None else rules.moment(due, "--deadline").astimezone(),
        roster.read(Path(chosen["roster"])) if "roster" in chosen else (),
        [mark for path in (*templates, *named) for mark in marks.read(path, course)],
        class_rules,
        [each for path in chosen.get("requests", "").split("\n") if path for each in requests.read_table(Path(path))],
    )
