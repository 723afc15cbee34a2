"""The card that sets a prediction beside what came, as text and as HTML.

The HTML carries what a page without a kernel needs: the same sentences for every prediction that could be made there.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from html import escape

from labkit.teach.questions.question import Kind, Question, Said
from labkit.view.assets import asset

BLANK = "{}"
"""Where a page puts what was said."""


def _it(verb: str, values: Said) -> str:
    """`It was 6.`; where more than one word was said, a colon keeps the sentence readable."""
    words = ", ".join(values)
    return f"{verb}{':' if ' ' in words else ''} {words}."


@dataclass(frozen=True)
class Answer:
    """What came, what was said of it, and why; the last expression of a cell shows it."""

    question: Question
    came: Said
    said: Said | None = None

    @property
    def agrees(self) -> bool:
        """Whether it came as was said."""
        return self.said == self.came

    @cached_property
    def lines(self) -> list[str]:
        """The card as lines of text."""
        return [self.head(self.said), self.because, *self.reply(self.said)]

    def head(self, said: Said | None) -> str:
        """The first line for that prediction."""
        it_was = _it("It was", self.came)
        return it_was if said is None else f"{_it('You said', said)} {it_was}"

    @property
    def because(self) -> str:
        """Why it came so; of a run that came out in another way only that it did."""
        expected = self.question.right
        if self.came == expected:
            return self.question.because
        return (
            "This run came out differently from the one in the question, for example because a parameter was changed. "
            f"There, {_it('it is', expected)} {self.question.because}"
        )

    def reply(self, said: Said | None) -> list[str]:
        """The sentence for who said that, if the question has one and it was not so."""
        if said is None or said == self.came or self.came != self.question.right:
            return []
        return [self.question.replies[each] for each in said if each in self.question.replies]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def html(self) -> str:
        """The card as HTML that needs no script; a page finds in it what it needs to speak of its own reader."""
        said = "" if self.said is None else f' data-said="{escape(json.dumps(self.said))}"'
        mark = "" if self.said is None else ("agrees" if self.agrees else "differs")
        more = "".join(f"<p>{escape(line)}</p>" for line in self.reply(self.said))
        return (
            f'<div class="lk lk-answer" data-lk-answer="{escape(self.question.name)}" data-mark="{mark}"{said} '
            f'data-lines="{escape(json.dumps(self._for_pages(), ensure_ascii=False))}">'
            f"<style>{asset('scene.css')}{asset('question.css')}</style>"
            f'<p class="lk-head">{escape(self.head(self.said))}</p>'
            f'<p>{escape(self.because)}</p><div class="lk-reply">{more}</div></div>'
        )

    def _for_pages(self) -> dict[str, object]:
        """What a page says of each prediction that can be made on it."""
        return {
            "came": list(self.came),
            "alone": self.head(None),
            "heads": {option: self.head((option,)) for option in self.question.options}
            if self.question.kind is Kind.CHOICE
            else {},
            "other": f"You said: {BLANK}. {_it('It was', self.came)}"
            if self.question.kind is Kind.SEVERAL
            else f"You said {BLANK}. {_it('It was', self.came)}",
            "replies": {option: reply[0] for option in self.question.options if (reply := self.reply((option,)))},
        }

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": str(self)}
