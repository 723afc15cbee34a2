"""Define the type of the option `crashes` of a run: a list of failpoints."""

from collections.abc import Iterable

from labkit.core.failpoints import Crash, parse_crash
from labkit.core.kinds import Kind, Unfit, Word


class Crashes(Kind[tuple[Crash, ...]]):
    """The type of the option `crashes`: a list of failpoints; the nth driver is killed at the nth failpoint."""

    annotation = list[str]
    accepts = list[str] | str
    metavar = "POINT[@BATCH]"

    def read(self, word: object) -> tuple[Crash, ...]:
        """Return the crashes that `word` names: a text `POINT` or `POINT@BATCH`, or a list of such texts.

        Raises `Unfit` for another kind of value, and `InvalidInput` for an unknown failpoint or a wrong batch.
        """
        words = [word] if isinstance(word, str) else word
        if not isinstance(words, Iterable):
            raise Unfit("write POINT or POINT@BATCH.")
        return tuple(parse_crash(str(each)) for each in words)

    def word(self, value: tuple[Crash, ...]) -> Word:
        return [str(crash) for crash in value]
