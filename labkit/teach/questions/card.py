"""Show a learner's prediction next to the result of a run on a card, as text and as HTML.

The HTML contains the sentences for every possible prediction, so that a static page can show the right ones.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from html import escape

from labkit.teach.questions.question import Answers, Kind, Question
from labkit.view.assets import asset
from labkit.view.card import Shown

BLANK = "{}"
"""The text that a page's script replaces with its reader's prediction."""


def _it(verb: str, values: Answers) -> str:
    words = ", ".join(values)
    return f"{verb}{':' if ' ' in words else ''} {words}."


@dataclass(frozen=True)
class Answer(Shown):
    """The answer to a question, displayed as a card: the learner's prediction, the measured result, an explanation."""

    question: Question
    outcome: Answers
    words: Answers | None = None

    @property
    def agrees(self) -> bool:
        """Whether the learner's prediction was right."""
        return self.words == self.outcome

    @cached_property
    def lines(self) -> list[str]:
        """The card as lines of text: prediction and result, explanation, and a reply to a wrong prediction."""
        return [self.head(self.words), self.because, *self.reply(self.words)]

    def head(self, words: Answers | None) -> str:
        """Return the first line of the card: the prediction (`words`) and the result, or only the result."""
        it_was = _it("It was", self.outcome)
        return it_was if words is None else f"{_it('You said', words)} {it_was}"

    @property
    def because(self) -> str:
        """The explanation of the result. If the result is not the expected one, a sentence at the beginning says so."""
        expected = self.question.right
        if self.outcome == expected:
            return self.question.because
        return (
            "This run came out differently from the run in the question, for example because you changed a parameter. "
            f"{_it('The expected result is', expected)} {self.question.because}"
        )

    def reply(self, words: Answers | None) -> list[str]:
        """Return a list of the question's replies to the wrong prediction `words`, at most one sentence per option.

        The list is empty if the prediction is right or None, or if the result is not the expected one.
        """
        if words is None or words == self.outcome or self.outcome != self.question.right:
            return []
        return [self.question.replies[each] for each in words if each in self.question.replies]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def html(self) -> str:
        """Return the card as HTML, with the replies to every possible prediction, for pages without a kernel."""
        attribute = "" if self.words is None else f' data-said="{escape(json.dumps(self.words))}"'
        mark = "" if self.words is None else ("agrees" if self.agrees else "differs")
        more = "".join(f"<p>{escape(line)}</p>" for line in self.reply(self.words))
        return (
            f'<div class="lk lk-answer" data-lk-answer="{escape(self.question.name)}" data-mark="{mark}"{attribute} '
            f'data-lines="{escape(json.dumps(self._for_pages(), ensure_ascii=False))}">'
            f"<style>{asset('scene.css')}{asset('question.css')}</style>"
            f'<p class="lk-head">{escape(self.head(self.words))}</p>'
            f'<p>{escape(self.because)}</p><div class="lk-reply">{more}</div></div>'
        )

    def _for_pages(self) -> dict[str, object]:
        return {
            "came": list(self.outcome),
            "alone": self.head(None),
            "heads": {option: self.head((option,)) for option in self.question.options}
            if self.question.kind is Kind.CHOICE
            else {},
            "other": f"You said: {BLANK}. {_it('It was', self.outcome)}"
            if self.question.kind is Kind.SEVERAL
            else f"You said {BLANK}. {_it('It was', self.outcome)}",
            "replies": {option: reply[0] for option in self.question.options if (reply := self.reply((option,)))},
        }
