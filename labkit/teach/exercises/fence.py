"""The exercise of notebook 09c: the rule by which a store accepts or refuses requests of old and new consumers.

The judge tries every run of a few requests. The consumers own the partition one after the other. Each may announce
itself with an empty request, send new records, repeat old ones, also together with new ones, and return after a newer
owner has taken over.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Cases

FENCED = "fenced"


class Request(NamedTuple):
    """A request to a store of rows, with the store's state when the request arrives.

    `story` is the list of the requests that led to this state, as text.
    """

    newest: int
    """The newest generation of the consumer group from which the store has accepted a request."""
    following: int
    """The offset after the last stored row."""
    generation: int
    offsets: Sequence[int]
    story: Sequence[str] = ()

    @property
    def text(self) -> str:
        return f"generation {self.generation} sends {shown(list(self.offsets))}"


class Stored(NamedTuple):
    """A store after a request: its newest generation, the offset after its last row, and the offsets just accepted."""

    newest: int
    following: int
    accepted: list[int]


def _arguments(request: Request) -> tuple[Plain, ...]:
    return request.newest, request.following, request.generation, list(request.offsets)


def _right(request: Request) -> Stored | None:
    """Return the right state of a store after a request, with the offsets that the store should accept.

    Returns None if the store should refuse (fence) the request.
    """
    if request.generation < request.newest:
        return None
    new = [offset for offset in request.offsets if offset >= request.following]
    return Stored(request.generation, max([request.following, *(offset + 1 for offset in new)]), new)


def _requests(variant: Variant) -> Iterator[Request]:
    """Yield the variant's `requests`; if it has no such parameter, yield every possible request with a topic's rows."""
    parameters = dict(variant.parameters)
    if "requests" in parameters:
        yield from (Request(*each) for each in parameters["requests"])
    else:
        yield from _of_topic(**parameters)


def _of_topic(topic: Sequence[int], generations: Sequence[int], batch: int) -> Iterator[Request]:
    """Yield every request of up to `batch` records of the `topic`, in every state that the store can have.

    Each request comes with a shortest list of earlier requests that lead to the state.
    """
    todo = deque[tuple[int, int, tuple[str, ...]]]([(0, 0, ())])
    seen = {(0, 0)}
    while todo:
        newest, following, story = todo.popleft()
        stored = sum(offset < following for offset in topic)
        slices = {tuple(topic[first : first + size]) for first in range(stored + 1) for size in range(batch + 1)}
        for generation in generations:
            for offsets in sorted(slices):
                request = Request(newest, following, generation, offsets, story)
                yield request
                right = _right(request)
                if right is not None and right[:2] not in seen:
                    seen.add(right[:2])
                    todo.append((*right[:2], (*story, request.text)))


def _wrong(ask: Asker, request: Request) -> Finding | None:
    arguments = _arguments(request)
    value, statement = ask(*arguments), ask.with_answer(*arguments)
    if request.story:
        statement = f"After {', '.join(request.story[-5:])}: {statement}"
    answer = _read(value)
    if answer is None and value != FENCED:
        raise Unusable(
            f'{statement}; return "fenced", or a list [newest, following, accepted]: the newest generation after this '
            "request, the offset after the last stored row, and a list of the request's offsets that the store accepts."
        )
    right = _right(request)
    if answer == right:
        return None
    expected = shown(FENCED if right is None else [right.newest, right.following, [*right.accepted]])
    if right is None:
        observed = (
            f"The store has accepted generation {request.newest}, so generation {request.generation} owns nothing any "
            "more."
        )
        general = "A request of an older generation is not fenced."
    elif answer is None:
        observed = f"The store knows no newer generation than {request.generation}, so it must not refuse this request."
        general = "The owner of the partition is refused."
    else:
        observed, general = _accepted(request, answer, right) or _state(answer, right)
    return Finding(False, f"{statement}. {observed}", statement, expected, general=general)


def _read(value: Plain) -> Stored | None:
    if type(value) is not list or len(value) != 3:
        return None
    newest, following, accepted = value
    if type(newest) is not int or type(following) is not int or type(accepted) is not list:
        return None
    if any(type(each) is not int for each in accepted):
        return None
    return Stored(newest, following, cast("list[int]", accepted))


def _accepted(request: Request, answer: Stored, right: Stored) -> tuple[str, str] | None:
    """Return two messages on the first fault in the accepted offsets; None if there is no fault.

    The first message names the offset; the second one gives away no numbers.
    """
    sent, accepted = {*request.offsets}, {*answer.accepted}
    for offset in answer.accepted:
        if offset not in sent:
            return f"Offset {offset} is not in the request.", "An offset is accepted that was not sent."
        if offset < request.following:
            return (
                f"The store has the row of offset {offset} already, so the order is charged twice.",
                "An offset is accepted that is stored already.",
            )
    for offset in right.accepted:
        if offset not in accepted:
            return (
                f"Offset {offset} is new, and its row is lost, because the sender assumes that it is stored.",
                "A new offset is not accepted.",
            )
    if answer.accepted != right.accepted:
        return "List each accepted offset once, in order.", "The accepted offsets are not in order, or come twice."
    return None


def _state(answer: Stored, right: Stored) -> tuple[str, str]:
    if answer.newest != right.newest:
        return (
            f"The newest generation is {right.newest} from now on; with {answer.newest} the store would fence wrongly.",
            "The newest generation is wrong after a request.",
        )
    return f"The following offset is {right.following} now.", "The following offset is wrong after a request."


YEARS = 10**8
"""An offset so large that a set of all smaller ones takes 8 GB; most machines survive this even without a limit."""
OLD = (
    (9, YEARS, 9, (YEARS - 2, YEARS - 1, YEARS, YEARS + 4)),
    (9, YEARS, 10, ()),
    (10, YEARS + 5, 10, (YEARS, YEARS + 4)),
    (10, YEARS + 5, 9, (YEARS + 5,)),
)
"""Requests with offsets so large that an answer must not list all smaller ones."""

LARGE = (
    *((7, 9, 2**32 + 3, (2**32 + 3, 2**47 + 3, 10**17)), (10**18, 9, 1, (9,)), (10**9, 9, 10**9 - 2_000, (9,))),
    (2 * 10**10, 9, 3 * 10**9, (9,)),
)
"""Requests whose numbers a rule confuses if it cuts them to 32 bits, compares them as text, or limits differences."""

MOST_RECORDS = 5_000
"""The largest number of records in a request, as the task says."""


def long_request(first: int, stored: int, size: int = MOST_RECORDS) -> tuple[int, int, int, tuple[int, ...]]:
    """Return a request with `size` records, whose offsets begin at `first`.

    The store already contains the first `stored` of these records.
    """
    offsets = tuple(range(first, first + 2 * size, 2))
    return 3, offsets[stored], 3, offsets


def alike_as_floats(even: int) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield requests in which two numbers differ by one, although they are equal as floats.

    `even` should be a multiple of 4, and at least 2**53.
    """
    assert float(even) == float(even + 1)
    yield even + 1, 5, even, (5,)
    yield even, 5, even + 1, (5,)
    yield 2, even + 1, 2, (even, even + 1)


MOST = 9 * 10**18
"""The largest offset and generation, as the task says."""
MULTIPLES = (
    *(MOST, 10**18, 2**62, 2**31 * (2**31 - 1), 2**32 * (2**30 + 1), 65_521 * 65_537 * 10**9, 999_999 * 10**12),
    *(720_720 * 97 * 101 * 103 * 107 * 109 * 113, 255 * 257 * 8_191 * 10**9, 10_007 * 99_991 * 998_244_353),
    *(1_000_003 * (10**9 + 7) * 8_999, (10**9 + 9) * 86_400 * 365, 2**53, 2**48, 2**32, 2**31, 65_536, 10_000, 1_000),
)
"""Numbers at which the remainders by many divisors begin at 0 again; some have a digit more than their predecessor."""


def where_remainders_begin_anew() -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield requests whose numbers are next to multiples of usual divisors, such as 65,536.

    They reveal an answer that divides, cuts, caps or rounds numbers before it compares them.
    """
    for number in MULTIPLES:
        yield number - 1, 5, number, (5,)
        yield number, 5, number - 1, (5,)
        yield 1, 5, number, (4, 5)
        yield number, number, number, (number - 2, number - 1, number)
        yield 1, 5, 1, (4, 5, number - 1, number)


ADMIT = Cases("admit", _requests, _wrong, "It answers {} requests as it should", _arguments)
JUDGES = {
    "09c-fence": by(
        ADMIT.judge,
        variant("two owners", topic=(0, 1, 2, 3), generations=(1, 2), batch=3),
        variant("gaps", topic=(0, 1, 4, 5, 9), generations=(2, 5), batch=2),
        variant("a topic of many years", requests=OLD),
        variant("a group of many generations", requests=tuple(alike_as_floats(2**53))),
        variant(
            "numbers far apart, and long requests",
            requests=(*LARGE, long_request(0, 0), long_request(5, MOST_RECORDS - 1)),
        ),
        variant("numbers of up to 19 digits", requests=tuple(where_remainders_begin_anew())),
    )
}
