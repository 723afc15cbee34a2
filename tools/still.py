"""Draw still pictures for pages without scripts: the stepper at one step, what a reader saw over time, a batch.

Each is one SVG file that needs nothing else and follows the reader's light or dark scheme.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from labkit.view import spacetime
from labkit.view.assets import asset
from labkit.view.charts import Point, Track, tracks
from labkit.view.layout import TEXT, TITLE
from labkit.view.measure import wrap
from labkit.view.narration import BROKEN, HOLDS, Story
from labkit.view.stepper import sentence_of
from labkit.view.strip import CROSS, Strip
from labkit.view.svg import document, number, pieces, words
from labkit.view.timeline import Step

EDGE, LINE = 12.0, 19.0
SIGNS = {HOLDS: "✓", BROKEN: "✗"}


def stepper(story: Story, step: int) -> str:
    """Return the SVG of a player at one step: sentence, picture, space-time diagram, and the properties' verdicts."""
    place, diagram = story.layout(), story.diagram()
    wide, high = spacetime.size(diagram)
    across = max(place.width, wide) + 2 * EDGE
    parts, y = [words(EDGE, 26, story.title, "h")], 26.0
    for line in wrap(f"{step}. {sentence_of(story, step)}", TITLE, across - 2 * EDGE, bold=True):
        y += LINE
        parts.append(words(EDGE, y, line, "h"))
    y += 8
    parts.append(_moved(EDGE, y, "".join(_pieces(story, step))))
    y += place.height + 10
    at = spacetime.scale(diagram)
    half = max(4.0, at.step * 0.35)
    cursor = _rect(at.left + at.step * step - half, 2, 2 * half, high - 4, "cur")
    parts.append(_moved(EDGE, y, cursor + spacetime.body(diagram)))
    y += high + 4
    for text, kind in _settled(story, step, across - 2 * EDGE):
        y += 16
        parts.append(words(EDGE, y, text, kind))
    title = f"{story.title}, step {step}: {sentence_of(story, step)}"
    return _file("".join(parts), across, y + 14, title, story.model.text(story.states[step]))


def _settled(story: Story, step: int, most: float) -> Iterable[tuple[str, str]]:
    """Yield lines with their CSS class: what to watch for, and each property that holds or is violated so far."""
    for line in wrap(f"Watch for: {story.watch_for}", TEXT, most) if story.watch_for else ():
        yield line, "s"
    for claim, verdict in zip(story.model.properties(), story.verdicts[step], strict=True):
        if verdict.outcome in SIGNS:
            message = f"{SIGNS[verdict.outcome]} {claim.sentence} {verdict.because}".strip()
            for line in wrap(message, TEXT, most, bold=True):
                yield line, "bad" if verdict.outcome == BROKEN else "v"


def _pieces(story: Story, step: int) -> Iterable[str]:
    place = story.layout()
    before, now = (pieces(story.scenes[each], place) for each in (max(0, step - 1), step))
    for name, piece in now.items():
        yield f'<g class="{"now" if before[name] != piece else ""}">{piece}</g>'


class Seen(NamedTuple):
    """The caption of one run: its name, and the judge's verdict."""

    name: str
    said: str


NOTE = "circle: before the crash; square: after the restart. Simulated: labkit demo shows the same on real Spark."
LEFT, ROW, VALUE, APART = 140.0, 92.0, 22.0, 84.0


def seen_over_time(runs: Mapping[Seen, Sequence[Step]], key: str) -> str:
    """Return the SVG of one key's values that a reader could have seen in each run, with crashes and jumps back."""
    result = tracks({run.name: steps for run, steps in runs.items()})
    last = max(place for track in result.values() for place in _places(track))
    across = LEFT + APART * (last + 1) + 20
    parts, y = ([words(EDGE, 24, f"{key}: what an outside reader could have seen, in order", "h")], 58.0)
    crashes = sorted({place for track in result.values() for place, label in track.moments if label != "end"})
    parts += [words(LEFT + APART * place + 6, 50, "SIGKILL, then restart", "bad") for place in crashes]
    for run in runs:
        parts.append(_moved(0, y, "".join(_row(run, result[run.name], across))))
        y += ROW
    parts.append(words(EDGE, y + 8, NOTE, "s"))
    descriptions = [f"{run.name}: {' '.join(_told(result[run.name]))}; {run.said}" for run in runs]
    return _file(
        "".join(parts), across, y + 20, f"{key} as an outside reader saw it over time", "\n".join(descriptions)
    )


def _places(track: Track) -> list[int]:
    return [point.place for point in track.points] + [place for place, _ in track.moments]


def _told(track: Track) -> list[str]:
    """Return the values and the crashes of a track in their order, as words."""
    seen = [(float(point.place), str(point.value)) for point in track.points]
    seen += [(place + 0.5, f"| {label} |") for place, label in track.moments if label != "end"]
    return [text for _, text in sorted(seen)]


def _row(run: Seen, track: Track, across: float) -> Iterable[str]:
    base = ROW - 20
    yield words(EDGE, 18, run.name, "h")
    for nth, line in enumerate(wrap(run.said, TEXT, LEFT - EDGE - 8)):
        yield words(EDGE, 36 + 15 * nth, line, "s")
    yield _path(f"M{number(LEFT)} {number(base)}H{number(across - 12)}", "la")
    for place, label in track.moments:
        if label == "end":
            continue
        x = LEFT + APART * place
        yield _path(f"M{number(x)} 0V{number(base)}", "dif")
    yield _steps(track.points, base, across)
    for point in track.points:
        yield from _point(point, base)


def _steps(points: Sequence[Point], base: float, across: float) -> str:
    """Return the SVG path of a step line, which keeps the old height until the next point."""
    way = ""
    for point in points:
        x, y = map(number, _place(point, base))
        way += f"H{x}V{y}" if way else f"M{x} {y}"
    return _path(f"{way}H{number(across - 12)}", "ms m1") if way else ""


def _place(point: Point, base: float) -> tuple[float, float]:
    return LEFT + APART * point.place, base - VALUE * point.value


def _point(point: Point, base: float) -> Iterable[str]:
    x, y = _place(point, base)
    after = point.driver > 1
    yield _rect(x - 6, y - 6, 12, 12, "t k2" if after else "t k1", round_by=0 if after else 6)
    yield words(x + 9, y - 6, str(point.value), "v")
    if point.went_back:
        yield words(x + 9, y + 16, "jumps back", "bad")


MOMENT, BAR, PART = 112.0, 5.0, 15.0


def strip(shown: Strip) -> str:
    """Return the SVG of the moments of one batch from left to right, with the names of their failpoints."""
    drawn, deepest = [words(EDGE, 24, shown.title, "h")], 0.0
    for place, moment in enumerate(shown.moments):
        x, y = EDGE + MOMENT * place, 54.0
        is_killed = moment.point is shown.killed
        kind = "bad" if is_killed else "v"
        bar = "killed" if is_killed else "disk" if moment.is_on_disk else "rest"
        drawn.append(_rect(x, 36, MOMENT, BAR, bar, round_by=0))
        name = f"{moment.name}{f' {CROSS}' if is_killed else ''}"
        room, point = MOMENT - 8, moment.point.value.replace(".", ". ").split()
        lines = [(line, kind) for line in wrap(name, TEXT, room, bold=True)]
        lines += [(line, "s") for line in wrap(moment.words, TEXT, room)]
        # A name with its dot is wider than a moment; each of its halves is not.
        lines += [(half, "p") for half in point]
        for text, look in lines:
            drawn.append(words(x, y, text, look))
            y += PART
        deepest = max(deepest, y)
    for note in shown.notes:
        deepest += PART + 3
        drawn.append(words(EDGE, deepest, note, "s"))
    colours = (
        ".disk { fill: var(--ok); } .killed { fill: var(--bad); } .rest { fill: var(--line); }"
        " .lk-pic .p { font: 10px ui-monospace, monospace; fill: var(--dim); }"
    )
    return _file(
        "".join(drawn), 2 * EDGE + MOMENT * len(shown.moments), deepest + 14, shown.title, str(shown), more=colours
    )


def _path(way: str, kind: str) -> str:
    return f'<path d="{way}" class="{kind}"/>'


def _rect(x: float, y: float, wide: float, high: float, kind: str, *, round_by: float = 3) -> str:
    at = f'x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="{number(high)}" rx="{number(round_by)}"'
    return f'<rect {at} class="{kind}"/>'


def _moved(x: float, y: float, drawn: str) -> str:
    return f'<g transform="translate({number(x)} {number(y)})">{drawn}</g>'


_COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)
_PAIR = re.compile(r"(--\w+): (?:var\(--jp-[\w-]+, )?light-dark\(([^,()]+), ([^()]+)\)\)?")


def style() -> str:
    """Return the style sheet for a separate file: plain colours, and others if the reader prefers dark."""
    sheet = _COMMENT.sub("", asset("scene.css"))
    dark = "; ".join(f"{name}: {other}" for name, _, other in _PAIR.findall(sheet))
    light = _PAIR.sub(r"\1: \2", sheet)
    more = ".lk-pic .bad { font-weight: 600; fill: var(--bad); }"
    return f"{light}{more}\n@media (prefers-color-scheme: dark) {{ .lk {{ {dark}; }} }}"


def _file(body: str, wide: float, high: float, title: str, desc: str, *, more: str = "") -> str:
    back = _rect(0, 0, wide, high, "back", round_by=8)
    return document(
        back + body, wide, high, title=title, desc=desc, style=style() + ".back { fill: var(--bg); }" + more
    )
