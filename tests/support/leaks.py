"""What in a learner's notebook gives the answer of a question away before its answer cell
(`tests/notebooks/test_leaks.py`).

A leak is one of these, in any cell of the learner's copy above the answer cell, and partly in that cell itself:
an assertion or a comparison with the right value, or a name such as `expected` set to it; a scenario whose name tells
what happens, or a run kept under such a name; a sentence that says what came; the question's own reasons; metadata that
holds the value; an output or an expected text.
"""

import ast
import json
import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from labkit.sim.models import MODELS
from labkit.teach.questions.question import MOST, Question, plainly

TELLING = {
    "lost", "loses", "loss", "doubled", "doubles", "twice", "repeated", "repeats", "duplicated",
    "torn", "kept", "broken", "breaks", "jump", "jumps", "appears", "vanishes", "wrong",
    "conserved", "reorders", "fractured", "regression", "survives", "safe", "unsafe",
}  # fmt: skip
"""Words that tell what a run shows, as parts of a name."""
CAUSES = {
    "delivery.lost_and_repeated": "the record is lost on the way, and the sender repeats it: both are done to the run",
    "delivery.worked_on_twice": "the work is done twice; what is counted is the question",
    "delivery.lost_acknowledgement": "the loss is what is done to the run, and not what comes of it",
    "changelog.lost_retraction": "the loss is what is done to the run; what a reader finds then is the question",
    "changelog.lost_upsert": "the same",
}
"""Names with such a word that tell nothing, each with the reason."""
DONE = frozenset({"kept", "twice"})
"""Of these words the ones that may also say what is done to a run, where the notebook gives it a name."""
RUNS = {"crash", "explore", "explorer", "replay", "show", "simulate"}
"""Functions of the lab that take a scenario or a moment, and whose result must not be kept under a telling name."""
EXPECTING = re.compile(r"expect|right|should|answer|solution|correct|wanted")
NUMBERS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
]  # fmt: skip
SAYS = (
    r"\b(?:it (?:was|is|will be)|(?:the )?(?:answer|result|verdict|outcome) (?:is|was|will be)|turns out(?: to be)?|"
    r"(?:a reader|you) (?:finds?|found|will (?:find|see))|comes? out (?:as|to)|ends? (?:up )?with)\W{1,3}"
)
"""How a sentence begins that says what came."""
SENTENCE = re.compile(r"(?<=[.!?])\s+")
LEAST_WORDS = 4
"""Words of a sentence that is recognised as the question's own reason."""


def calls(cell: NotebookNode, verb: str) -> list[ast.Call]:
    """The calls of `lab.ask` or `lab.answer` in a cell, in order."""
    return [
        node
        for node in ast.walk(tree(cell))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == verb
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "lab"
    ]


def tree(cell: NotebookNode) -> ast.Module:
    """The code of a cell; of any other cell, and of one that is no Python, nothing."""
    if cell.cell_type != "code":
        return ast.Module([], [])
    lines = ["" if each[:1] in {"%", "!"} else each for each in cell.source.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except SyntaxError:
        return ast.Module([], [])


def about(cell: NotebookNode, verb: str) -> list[str]:
    """The names of the questions that a cell asks, or answers."""
    return [
        call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else "a name that is not written out"
        for call in calls(cell, verb)
    ]


def order_of(cells: Sequence[NotebookNode], questions: Sequence[Question]) -> list[str]:
    """What is wrong with the asking: every question once, behind it its answer, and none that is not in the data."""
    asked = [(name, place) for place, cell in enumerate(cells) for name in about(cell, "ask")]
    told = [(name, place) for place, cell in enumerate(cells) for name in about(cell, "answer")]
    known = [question.name for question in questions]
    found = [f"{name}: no such question of this notebook" for name in dict(asked + told) if name not in known]
    for name in known:
        places = [[place for each, place in where if each == name] for where in (asked, told)]
        if list(map(len, places)) != [1, 1]:
            found.append(f"{name}: asked {len(places[0])} times, answered {len(places[1])} times; once each is right")
        elif places[0][0] >= places[1][0]:
            found.append(f"{name}: its answer comes before the question, or in the same cell")
    if len(asked) > MOST:
        found.append(f"{len(asked)} questions; at most {MOST}")
    return found


def leaks(notebook: NotebookNode, question: Question) -> list[str]:
    """What gives the answer away in a notebook that answers the question, with the cell that does."""
    cells = notebook.cells
    place = next(place for place, cell in enumerate(cells) if question.name in about(cell, "answer"))
    found = [
        f"{question.name}, cell {number}: {why}"
        for number, cell in enumerate(cells[:place])
        for why in _of_cell(cell, question)
    ]
    found += [f"{question.name}, cell {place}: {why}" for why in _of_answer(cells[place], question)]
    return found + [f"{question.name}, notebook: {why}" for why in _of_metadata(notebook.metadata, question)]


def _of_cell(cell: NotebookNode, question: Question) -> Iterator[str]:
    yield from _of_text(cell.source, question)
    yield from _of_metadata(cell.metadata, question)
    yield from _of_outputs(cell)
    yield from _of_code(tree(cell), question)
    yield from _of_names(cell)


def _of_answer(cell: NotebookNode, question: Question) -> Iterator[str]:
    """What is in sight of the answer cell before it is run."""
    yield from _of_metadata(cell.metadata, question)
    yield from _of_outputs(cell)
    yield from _of_code(tree(cell), question)
    for call in calls(cell, "answer"):
        given = [*call.args[1:], *(each.value for each in call.keywords)]
        if any(map(_is_literal, given)):
            yield "what is found is written out, and not measured by the run"


def _of_text(text: str, question: Question) -> Iterator[str]:
    plain = _plain(text)
    told = [question.because, *question.replies.values()]
    for sentence in (part for each in told for part in SENTENCE.split(each)):
        if len(sentence.split()) >= LEAST_WORDS and _plain(sentence) in plain:
            yield f"it holds the reason {sentence!r}"
    for value in question.right:
        words = [value, *NUMBERS[int(value) : int(value) + 1]] if value.isdigit() else [value]
        for word in words:
            if re.search(rf"{SAYS}(?:an? |the )?{re.escape(_plain(word))}\b", plain):
                yield f"it says that it was {word!r}"


def _of_code(module: ast.Module, question: Question) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Assert) and _holds(node, question):
            yield "an assertion holds the right value"
        elif isinstance(node, ast.Compare) and any(_holds(each, question) for each in (node.left, *node.comparators)):
            yield "a comparison holds the right value"
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = " ".join(ast.unparse(each) for each in targets).lower()
            if EXPECTING.search(names) and _holds(node.value, question):
                yield f"{names} is the right value"
        elif isinstance(node, ast.keyword) and EXPECTING.search(str(node.arg).lower()):
            yield from ["a keyword is the right value"] * _holds(node.value, question)


def _of_names(cell: NotebookNode) -> Iterator[str]:
    for name in re.findall(rf"\b(?:{'|'.join(MODELS)})\.[a-z_0-9]+\b", cell.source):
        if name not in CAUSES and _tells(name):
            yield f"the scenario's name {name} tells what happens"
    for node in ast.walk(tree(cell)):
        for name in _names(node):
            if _tells(name, DONE):
                yield f"the name {name} tells what the run shows"


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a learner reads of a run: of a scenario without its model, of what is kept, of what is
    compared.
    """
    if isinstance(node, ast.Assign) and _is_run(node.value):
        yield from map(ast.unparse, node.targets)
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "compare":
        yield from (each.arg for each in node.keywords if each.arg)
    if _is_run(node):
        told = (str(each.value) for each in node.args if isinstance(each, ast.Constant))
        yield from (each for each in told if "." not in each)


def _of_metadata(metadata: object, question: Question) -> Iterator[str]:
    plain = _plain(json.dumps(metadata, ensure_ascii=False))
    for sentence in SENTENCE.split(question.because):
        if _plain(sentence) in plain:
            yield "its metadata hold the reason"
    if any(plainly(each) in question.right for each in _leaves(metadata) if each is not True and each is not False):
        yield "its metadata hold the right value"
    if {"expected", "checked", "solution"} & set(getattr(metadata, "get", dict)("tags", [])):
        yield "a cell that is not for learners is in their copy"


def _of_outputs(cell: NotebookNode) -> Iterator[str]:
    if cell.cell_type == "raw":
        yield "a raw cell is in the learner's copy"
    if cell.cell_type == "code" and (cell.outputs or cell.execution_count):
        yield "it has an output"


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _holds(node: ast.AST, question: Question) -> bool:
    """Whether the right value is written out below a node."""
    return any(isinstance(each, ast.Constant) and plainly(each.value) in question.right for each in ast.walk(node))


def _is_literal(node: ast.AST) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def _is_run(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in RUNS


def _tells(name: str, but: frozenset[str] = frozenset()) -> bool:
    return bool(set(re.split(r"[._\d]+", name.lower())) & (TELLING - but))


def _plain(text: str) -> str:
    """A text without marks, emphasis, and line breaks, in small letters."""
    return " ".join(re.sub(r"[*_`#>]", "", text).lower().split())
