"""Does the work of `labkit grade` without its printed output: grades submissions and writes the gradebook."""

import shutil
from dataclasses import dataclass, field, replace

from labkit.grading import policy
from labkit.grading.batch import Done, Tell, on_spark, run
from labkit.grading.course import load
from labkit.grading.gradebook import keys_called, write_book
from labkit.grading.order import SHARDS, Order
from labkit.grading.records import Record
from labkit.grading.scoring import Gradebook
from labkit.grading.shards import folder_of
from labkit.grading.submissions import check


@dataclass(frozen=True)
class Graded:
    """The result of `labkit grade`: numbers of submissions, their records (stored results), and the gradebook."""

    done: Done
    records: list[Record] = field(default_factory=list)
    book: Gradebook | None = None
    """The gradebook, or None for a shard (one part of the submissions), for which no table is written."""


def grade(order: Order, tell: Tell) -> Graded:
    """Grade all submissions without a valid record, and write grades.csv and all HTML pages.

    Raises `InvalidInput`, `GradingError` without a working sandbox, and on Spark `JobFailed` and `ServiceUnavailable`.
    """
    check(order.given)
    course, options = load(order.course), policy.options(order.out, order.about_class())
    class_policy = policy.read(order.out, options, course)
    keys = [key for word in order.only for key in keys_called(order.out, course, class_policy, word)]
    order = replace(order, only=keys, options=options, deadline=class_policy.deadline, asked=class_policy.rules.asked)
    if order.master is not None:
        order = on_spark(order, order.master, order.shards or SHARDS)
    done = run(order, tell)
    if order.shard is not None:
        return Graded(done)
    if order.master is not None:
        shutil.rmtree(folder_of(order.out), ignore_errors=True)  # their results are copied
    records, book = write_book(order.out, course, class_policy)
    return Graded(done, records, book)
