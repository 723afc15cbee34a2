"""Draw the parts of a streaming job as one picture: readers, tasks, stores, and which survive a crash."""

from typing import NamedTuple

from labkit.core.words import columns
from labkit.view.card import Drawn
from labkit.view.scene import Kind
from labkit.view.svg import KINDS, document, icon, words


class Piece(NamedTuple):
    """A part of a streaming job: name, work, whether it survives a crash, and its box's upper left corner in pixels."""

    name: str
    does: tuple[str, ...]
    kind: Kind
    x: int
    y: int


WIDE, HIGH = 162, 92
PIECES = (
    Piece("log", ("keeps records in order;", "here: the folder orders"), Kind.DURABLE, 12, 54),
    Piece("source", ("reads the log;", "here: spark.readStream"), Kind.VOLATILE, 214, 54),
    Piece("task", ("computes a part;", "here: counts words"), Kind.VOLATILE, 396, 54),
    Piece("sink", ("writes the results;", "here: write_batch"), Kind.VOLATILE, 578, 54),
    Piece("store", ("keeps the results;", "here: results.txt"), Kind.DURABLE, 780, 54),
    Piece("driver", ("plans each batch,", "directs the tasks"), Kind.VOLATILE, 396, 186),
    Piece("checkpoint folder", ("offsets/N: planned;", "commits/N: finished"), Kind.DURABLE, 12, 304),
    Piece("outside reader", ("looks at any time;", "here: you"), Kind.VISIBLE, 780, 304),
)  # fmt: skip
ARROWS = (
    ("M174 100H206", "M214 100l-9-5v10z"),
    ("M376 100H388", "M396 100l-9-5v10z"),
    ("M558 100H570", "M578 100l-9-5v10z"),
    ("M740 100H772", "M780 100l-9-5v10z"),
    ("M861 146V296", "M861 304l-5-9h10z"),
    ("M477 186V154", "M477 146l-5 9h10z"),
    ("M396 232H93V296", "M93 304l-5-9h10z"),
)
"""The arrows, each as a line and a tip in SVG: records, results, orders to the task, the driver's log entries."""


class Pieces(Drawn):
    """A picture of a streaming job's parts, shown as SVG in a notebook and as text in a terminal."""

    def __str__(self) -> str:
        return columns([(piece.name, f"{' '.join(piece.does)}; {KEPT[piece.kind]}") for piece in PIECES])

    def svg(self) -> str:
        spark = '<rect x="196" y="16" width="562" height="284" rx="10" class="vo"/>'
        arrows = "".join(f'<path d="{line}" class="c"/><path d="{tip}" class="a"/>' for line, tip in ARROWS)
        body = spark + words(214, 38, "Spark: processes, in memory", "s") + arrows
        body += "".join(map(_box, PIECES))
        key = ((Kind.DURABLE, 214, "on disk: a crash leaves it"), (Kind.VOLATILE, 420, "in memory: a crash takes it"))
        body += "".join(_key(kind, x, 372, text) for kind, x, text in key)
        return document(body, 954, 412, title="The pieces of a streaming job", desc=str(self))


KEPT = {
    Kind.DURABLE: "on disk, survives a crash",
    Kind.VOLATILE: "in memory, a crash takes it",
    Kind.VISIBLE: "not part of the job",
}


def _box(piece: Piece) -> str:
    frame = f'<rect x="{piece.x}" y="{piece.y}" width="{WIDE}" height="{HIGH}" rx="8" class="{KINDS[piece.kind].css}"/>'
    sign = icon(piece.x + 10, piece.y + 13, KINDS[piece.kind].icon)
    lines = "".join(words(piece.x + 12, piece.y + 50 + 18 * number, line) for number, line in enumerate(piece.does))
    return frame + sign + words(piece.x + 28, piece.y + 24, piece.name, "h") + lines


def _key(kind: Kind, x: int, y: int, text: str) -> str:
    frame = f'<rect x="{x}" y="{y}" width="26" height="20" rx="5" class="{KINDS[kind].css}"/>'
    return frame + icon(x + 7, y + 4, KINDS[kind].icon) + words(x + 34, y + 14, text, "s")
