"""Grades submissions and writes the book: the whole of `labkit grade` but for its printing."""

from dataclasses import dataclass, field, replace

from labkit.grading import policy
from labkit.grading.batch import Done, Tell, on_spark, run
from labkit.grading.course import load
from labkit.grading.gradebook import keys_called, write_book
from labkit.grading.order import SHARDS, Order
from labkit.grading.records import Record
from labkit.grading.scoring import Gradebook
from labkit.grading.shards import drop, folder_of


@dataclass(frozen=True)
class Graded:
    """A batch that is done, and the book that was written from all records of the folder."""

    done: Done
    records: list[Record] = field(default_factory=list)
    book: Gradebook | None = None
    """None for a shard: it makes no table and no page, since it knows only its own submissions."""


def grade(order: Order, tell: Tell) -> Graded:
    """Grades what has no record yet or has changed, and writes grades.csv and all pages.

    Raises `InvalidInput`, `GradingError`, and with `master` also `JobFailed` and `ServiceUnavailable`.
    """
    course, options = load(order.course), policy.options(order.out, order.about_class())
    of_class = policy.read(order.out, options, course)
    anew = [key for word in order.only for key in keys_called(order.out, course, of_class, word)]
    order = replace(order, only=anew, options=options, deadline=of_class.deadline)
    if order.master is not None:
        order = on_spark(order, order.master, order.shards or SHARDS)
    done = run(order, tell)
    if order.shard is not None:
        return Graded(done)
    if order.master is not None:
        drop(folder_of(order.out))
    records, book = write_book(order.out, course, of_class)
    return Graded(done, records, book)
