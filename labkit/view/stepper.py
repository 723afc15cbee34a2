"""Make the player: HTML in which a reader steps through a run, without Python and without a network.

The page contains the run's data, style sheets and one ESM module. If scripts do not run (an untrusted notebook, a
mail), it still shows a picture of the last step and its sentence.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape

from labkit.sim.trace import Trace, replay
from labkit.view.assets import asset
from labkit.view.card import Shown
from labkit.view.narration import KEY_HELP, SENTENCE_OF_START, Story, first_difference
from labkit.view.svg import picture, pieces
from labkit.view.updates import StoryUpdates


def still(story: Story, step: int = -1) -> str:
    """Draw the state after step `step` (default: the last) as SVG. Parts that this step has changed are highlighted."""
    place = story.layout()
    step = step % len(story.scenes)
    drawn = [pieces(scene, place) for scene in story.scenes[max(0, step - 1) : step + 1]]
    now = [name for name, piece in drawn[-1].items() if drawn[0][name] != piece]
    title = f"{story.title}, step {step}: {sentence_of(story, step)}"
    return picture(story.scenes[step], place, title=title, desc=story.model.text(story.states[step]), now=now)


def sentence_of(story: Story, step: int) -> str:
    """Return the sentence that describes step `step` of a run; step 0 is the initial state."""
    return story.model.sentence_in(story.states[step - 1], story.actions[step - 1]) if step else SENTENCE_OF_START


def embedded(data: object) -> str:
    """Return the data as JSON that is safe inside an HTML script element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def embedded_page(data: object, fallback: str, *, styles: Sequence[str], script: str, mount: str) -> str:
    """Return HTML in which the function `mount` of `script` shows `data`.

    Where no script runs, the reader sees the HTML `fallback`.
    """
    shown = embedded(data)
    name = f"lk-{hashlib.sha256(shown.encode()).hexdigest()[:12]}"
    return (
        f'<div data-lk="{name}"><style>{"".join(map(asset, styles))}</style>{fallback}'
        f'<script type="application/json">{shown}</script>'
        f'<script type="module">{{{script}\n{mount}("{name}");}}</script></div>'
    )


def _page(data: dict[str, object], fallback: str) -> str:
    script = asset("stepper.js").partition("// LIVE:")[0].replace("export function", "function")
    return embedded_page(data, fallback, styles=("scene.css", "stepper.css"), script=script, mount="mountAll")


def to_page(story: Story, differs_at: int = 0) -> dict[str, object]:
    """Return a run's data for a page, ready for JSON.

    `differs_at` is the first step in which another run, shown beside this one, differs; 0 if there is none.
    """
    return {**StoryUpdates(story).whole(differs_at), "keys": [list(pair) for pair in KEY_HELP]}


def page_of(story: Story) -> str:
    """Return a run as an HTML page in which a reader steps through the run. The page needs no other files."""
    return _page(to_page(story), _fallback(story))


def _fallback(story: Story, at: int = 0) -> str:
    step = at or len(story.actions)
    source = f"data:image/svg+xml;base64,{b64encode(still(story, step).encode()).decode()}"
    sentence = f"{story.title}, after step {step}: {sentence_of(story, step)}"
    return f'<div class="lk-static"><p>{escape(sentence)}</p><img src="{source}" alt="{escape(sentence)}"></div>'


class Player(Shown):
    """A finished run in a notebook, which opens at step `at`. Raises a `LabError` if the trace cannot be replayed."""

    def __init__(self, trace: Trace, watch_for: str = "", at: int = 0) -> None:
        self.story = Story(replay(trace), watch_for)
        self.at = at

    def to_json(self) -> dict[str, object]:
        """Return the run's data for a page in which a reader steps through the run."""
        return {**to_page(self.story), **({"at": self.at} if self.at else {})}

    def html(self) -> str:
        return _page(self.to_json(), _fallback(self.story, self.at))

    def __str__(self) -> str:
        return "\n".join(self.story.lines())


class Pair(Shown):
    """Two runs that a notebook shows side by side. A reader steps through both at the same time."""

    def __init__(self, left: Player, right: Player) -> None:
        self.left, self.right = left, right
        self.differs_at = first_difference(left.story, right.story)

    @property
    def sentence(self) -> str:
        """A sentence that says in which step the two runs first differ, and what each run does in this step."""
        if not self.differs_at:
            return "The two runs do not differ."
        at = self.differs_at
        left, right = (
            sentence_of(each.story, at) if at <= len(each.story.actions) else "it has ended."
            for each in (self.left, self.right)
        )
        return f"The first difference is in step {at}. Left: {left} Right: {right}"

    def html(self) -> str:
        pair = [to_page(player.story, self.differs_at) for player in (self.left, self.right)]
        return _page({"pair": pair, "said": self.sentence}, _fallback(self.left.story) + _fallback(self.right.story))

    def __str__(self) -> str:
        return f"{self.sentence}\n\nleft: {self.left}\n\nright: {self.right}"
