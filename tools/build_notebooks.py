"""Build both copies of every notebook from its one source, `notebooks/src/NN_topic.py` (jupytext's py:percent).

The learner's copy, `notebooks/NN_topic.ipynb`, is in git, without outputs, which would spoil the predictions. The
checked copy, `checked/NN_topic.ipynb`, is derived and would give the answers away, so it is not in git. Its folder is
at the same level, because nbval runs a notebook in its own folder. Its cells tagged `nbval-check-output` carry the text
that they must print, and below it the text of their last expression. In the source this text follows as a raw cell:

    # %% tags=["nbval-check-output"]
    print(verdict)

    # %% [raw] tags=["expected"]
    # duplicate: 2 hello

A cell tagged `checked`, an assertion, is in the checked copy alone. A line `{head}` in the first cell becomes the
minutes and the notebooks to read before. The metadata of a source name these, and whether only `make test-all` runs it:

    # ---
    # jupyter:
    #   labkit:
    #     needs: [01_guarantees]
    #     slow: true
    # ---

An exercise is a stub tagged `exercise`, which begins with `# exercise NN-word`, its solution tagged `solution`, and a
cell tagged `check`. Above the stub every copy gets the task and hints from `labkit/teach/exercises/texts/NN.toml`, and
before the first one the cell `RULES`. Only the instructor's copy has the solution, in place of the stub. The stubs go
into `labkit/teach/exercises/stubs.json` for `lab.reset`; the solutions, with those of
`notebooks/src/other_solutions.toml`, go into `solutions.json` beside it, packed, for learners whose answer has passed.
The text after an answer (`lab.answer`) is folded up to the next heading, so that nobody reads it before the run.

It also writes docs/glossary.md, the map in docs/course.md and the table in docs/reference/exercises.md. It runs no
notebook, except for `--accept`, which takes over what the checked cells print.
"""

import argparse
import difflib
import json
import os
import re
import sys
import tomllib
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from build_sinks import between
from nbformat import NotebookNode, v4
from outputs import said
from reading import minutes, table, tags
from reading import read as reading_of
from task_cells import task_cell

from labkit.core.words import markdown_table
from labkit.teach import glossary
from labkit.teach.exercises.registry import assignments
from labkit.teach.questions.notes import UNATTENDED
from labkit.teach.shipped import STEM, of_course

TAGS = {"parameters", "nbval-check-output", "expected", "raises-exception", "checked", "exercise", "solution", "check"}
CHECK, CHECKED, EXPECTED, STUB, SOLUTION = ("nbval-check-output", "checked", "expected", "exercise", "solution")
NAMED = re.compile(r"# exercise (\d\d[a-z]?-[a-z][a-z-]*)\n")
STUBS = Path("labkit") / "teach" / "exercises" / "stubs.json"
SOLUTIONS = STUBS.with_name("solutions.json")
OTHERS = Path("notebooks") / "src" / "other_solutions.toml"
"""The file with further good solutions, by exercise and title."""
TEXTS = "labkit/teach/exercises/texts/NN.toml"
ANSWERED = re.compile(r'lab\.answer\(\s*"([^"]+)"')
BEHIND = "What happened, and why"
"""The title of the folded section that hides the text after an answer."""
HEAD = "{head}"
"""The line of a source that is replaced by the minutes and the notebooks to read before."""
GLOSSARY = Path("docs") / "glossary.md"
COURSE = Path("docs") / "course.md"
TABLE = Path("docs") / "reference" / "exercises.md"
BEGIN_TABLE = "<!-- exercises: written by tools/build_notebooks.py from labkit/teach/exercises -->\n"
END_TABLE = "<!-- end of exercises -->"
MAP = "<!-- map: written by tools/build_notebooks.py from notebooks/src -->"
END_OF_MAP = "<!-- end of map -->"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


RULES = """\
## Exercises: what counts

- Write each answer into the cell that begins with `# exercise ...`, and **leave that line as it is**. If several cells
  assign the answer, the last one counts. `lab.reset` adds a fresh stub; delete your old cell if you want the stub to count.
- What is graded is **your cell alone**: with the parameters at the top of this notebook and with the cells that you have
  added or changed. Cells that are as you got them are not run, so an answer must not use names from them. Nobody answers
  `input()`.
- `lab.check` runs just that and says when it differs from what you see here. Its checks are public; when it is graded, other
  variants of the same questions are used.
- **Hand in this notebook**, saved, as `{name}.ipynb`. `labkit check {name}.ipynb` says beforehand what `lab.check` would
  say."""  # noqa: E501
"""The Markdown of the cell before the first exercise of a notebook; `format` inserts the notebook's name."""


class NotebookError(Exception):
    """The error that a source cannot be built; the message names the cell and the remedy."""


@cache
def _parsed(text: str) -> NotebookNode:
    """Return a source as a notebook, which nobody may change. A build needs it several times."""
    notebook: NotebookNode = jupytext.reads(text, fmt="py:percent")
    return notebook


def read(source: Path) -> tuple[list[NotebookNode], dict[int, str], dict[str, Any]]:
    """Return a source's cells, their expected texts by number, and labkit's metadata. Raises `NotebookError`."""
    notebook = deepcopy(_parsed(source.read_text(encoding="utf-8")))
    cells: list[NotebookNode] = []
    expected: dict[int, str] = {}
    for cell in notebook.cells:
        if STUB in tags(cell):
            cells.append(task(cell, source))
        place = f"{source}, cell {len(cells)} ({cell.source.strip().partition(chr(10))[0][:50]!r})"
        if unknown := tags(cell) - TAGS:
            raise NotebookError(
                f"{place}: unknown tag {', '.join(sorted(unknown))}; choose from {', '.join(sorted(TAGS))}"
            )
        if "NBVAL_" in cell.source:
            raise NotebookError(f"{place}: use a tag instead of a comment for nbval")
        if EXPECTED not in tags(cell):
            cells.append(cell)
            continue
        if not cells or CHECK not in tags(cells[-1]) or len(cells) - 1 in expected:
            raise NotebookError(f"{place}: a raw cell tagged {EXPECTED} must follow a cell tagged {CHECK}, one each")
        if cell.cell_type != "raw" or not cell.source.strip():
            raise NotebookError(f"{place}: the expected text must be a raw cell that is not empty")
        expected[len(cells) - 1] = cell.source.rstrip("\n") + "\n"
    for number, cell in enumerate(cells):
        if CHECK in tags(cell) and (number not in expected or cell.cell_type != "code"):
            raise NotebookError(
                f"{source}, cell {number}: tagged {CHECK}, so a raw cell tagged {EXPECTED} must follow it"
            )
    return fold_answers(cells), expected, dict(notebook.metadata.get("labkit", {}))


def fold_answers(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Return the cells, with a folded section around the text that follows the answers of questions."""
    answered: list[str] = []
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = folded(cell.source, answered)
            answered = []
        else:
            answered += ANSWERED.findall(cell.source)
    return cells


def folded(text: str, answered: Sequence[str]) -> str:
    """Return a Markdown text, folded up to its first heading if it follows the answers to the questions `answered`.

    JupyterLab, VS Code, GitHub and the pages of `make site` show a `<details>` closed, before anything has run. The
    question's script opens it when the answer has been shown (`labkit/view/static/question.js` finds it by its class).
    """
    if not answered:
        return text
    lines = text.split("\n")
    fences = accumulate(line.startswith("```") for line in lines)
    headings = (
        place
        for place, (line, fence) in enumerate(zip(lines, fences, strict=True))
        if line.startswith("#") and fence % 2 == 0  # no comment in a block of code
    )
    end = next(headings, len(lines))
    part, rest = ("\n".join(each).strip("\n") for each in (lines[:end], lines[end:]))
    if not part:
        return text
    names = " ".join(f"lk-after-{name}" for name in answered)
    fold = f'<details class="{names}"><summary>{BEHIND}</summary>\n\n{part}\n\n</details>'
    return f"{fold}\n\n{rest}" if rest else fold


def task(stub: NotebookNode, source: Path) -> NotebookNode:
    """Return the Markdown cell with the task of a stub's exercise. Raises `NotebookError` if there is no text."""
    asked = assignments().get(named(stub, source))
    if asked is None:
        raise NotebookError(f"{source}: {named(stub, source)} has no text; write it into {TEXTS}.")
    result: NotebookNode = v4.new_markdown_cell(task_cell(asked), metadata={"tags": ["task"]})
    return result


def named(cell: NotebookNode, source: Path) -> str:
    """Return the name of the exercise of a stub or solution. Raises `NotebookError` if its first line names none."""
    match = NAMED.match(cell.source)
    if match is None:
        raise NotebookError(f"{source}: a cell tagged {STUB} or {SOLUTION} must begin with '# exercise NN-word'")
    return match[1]


def exercises(source: Path) -> dict[str, tuple[str, str]]:
    """Return stub and solution of every exercise of a source, by name. Raises `NotebookError`."""
    cells, _, _ = read(source)
    results: dict[str, tuple[str, str]] = {}
    stub: tuple[str, str] | None = None
    for cell in cells:
        if SOLUTION in tags(cell):
            if stub is None or stub[0] != named(cell, source):
                raise NotebookError(f"{source}: the solution of {named(cell, source)} does not follow its stub")
            results[stub[0]] = stub[1], cell.source
        elif stub is not None and stub[0] not in results:
            raise NotebookError(f"{source}: no solution follows the stub of {stub[0]}")
        stub = (named(cell, source), cell.source) if STUB in tags(cell) else None
    return results


def headed(cells: list[NotebookNode], source: Path, lab: Mapping[str, Any]) -> list[NotebookNode]:
    """Return the cells, after replacing the line `HEAD` of the first one by minutes and needs."""
    lines = cells[0].source.splitlines() if cells else []
    if HEAD in lines:
        place = lines.index(HEAD)
        lines[place] = head(source, lab)
        cells[0].source = "\n".join(lines)
    return cells


def head(source: Path, lab: Mapping[str, Any]) -> str:
    """Return a line about a notebook: how long it takes, and which notebooks to read before."""
    cells, expected, _ = read(source)
    reading, exercising = minutes(cells, expected)
    more = f", and {exercising} for the exercises" if exercising else ""
    needs = [f"[{name}]({name}.ipynb)" for name in needed(source, lab)]
    first = f"Read {' and '.join(needs)} before." if needs else "It needs no other notebook."
    return f"*About {reading} minute{'s' * (reading != 1)}{more}. {first}*"


def needed(source: Path, lab: Mapping[str, Any]) -> list[str]:
    """Return the names of the notebooks to read before. Raises `NotebookError` if one is missing or comes later."""
    names = list(lab.get("needs", []))
    for name in names:
        is_there = (source.parent / f"{name}.py").exists()
        if not STEM.fullmatch(str(name)) or not is_there or name >= source.stem:
            raise NotebookError(
                f"{source}: it needs {name}, which is not an earlier notebook; name one such as 01_guarantees."
            )
    return names


def course_map(root: Path) -> str:
    """Return the Markdown of the course map: a table of all notebooks, and a diagram of which notebook needs which."""
    rows = [("notebook", "question", "read before", "minutes", "exercises")]
    built_on: dict[str, list[str]] = {}
    for source in sources(root):
        cells, expected, lab = read(source)
        built_on[source.stem] = needed(source, lab)
        reading, exercising = minutes(cells, expected)
        question = cells[0].source.splitlines()[0].removeprefix("# ")
        before = ", ".join(map(_number, built_on[source.stem])) or "-"
        link = f"[{source.stem}](../notebooks/{source.stem}.ipynb)"
        rows.append((link, question, before, str(reading), str(exercising or "-")))
    arrows = [
        f"  {_number(before)} --> {_number(name)}"
        for name, needs in built_on.items()
        for before in needs
        if not any(before in _all_needs(other, built_on) for other in needs)
    ]
    return "\n".join([markdown_table(rows), "", "```mermaid", "flowchart LR", *arrows, "```"])


def exercise_table() -> str:
    """Return the Markdown table of all exercises with task, kind, level and points."""
    rows = [("exercise", "what is asked", "kind", "level", "points")]
    for name, exercise in assignments().items():
        notes = {", by hand": exercise.by_hand, ", on Spark": exercise.needs_spark, ", by axis": bool(exercise.axes)}
        note = next((text for text, applies in notes.items() if applies), "")
        points = f"{exercise.points}{note}" if exercise.is_graded else "-"
        rows.append((f"`{name}`", exercise.title, exercise.kind.value, exercise.level.value, points))
    return markdown_table(rows) + "\n"


def _number(name: str) -> str:
    return name.partition("_")[0]


def _all_needs(name: str, built_on: Mapping[str, list[str]]) -> set[str]:
    """Return the names of all notebooks to read before a notebook, including the needs of its needs."""
    direct = built_on[name]
    return {*direct, *(each for other in direct for each in _all_needs(other, built_on))}


def rules(source: Path, number: int) -> NotebookNode:
    """Return the cell `RULES`, with the cell id `number`."""
    text_of_it = RULES.format(name=source.stem)
    result: NotebookNode = v4.new_markdown_cell(text_of_it, id=str(number), metadata={"tags": ["rules"]})
    return result


def is_first_task(cell: NotebookNode, before: Iterable[NotebookNode]) -> bool:
    """Return whether a cell is the first task of a notebook; `before` are the cells before it."""
    return "task" in tags(cell) and not any("task" in tags(each) for each in before)


def instructor(source: Path) -> str:
    """Return the JSON of the instructor's copy, in which a solution replaces every stub; it has no outputs."""
    cells, _, lab = read(source)
    solved = exercises(source)
    kept: list[NotebookNode] = []
    for cell in cells:
        if {SOLUTION, CHECKED} & tags(cell):
            continue
        if is_first_task(cell, kept):
            kept.append(rules(source, len(kept)))
        kept.append(copy(cell, len(kept)))
        if STUB in tags(cell):
            kept[-1].source = solved[named(cell, source)][1]
    return text(headed(kept, source, lab), KERNEL | ({"labkit": lab} if lab else {}))


def stubs(root: Path) -> str:
    """Return the text of the JSON file with the stub of every exercise."""
    results = {name: stub for source in sources(root) for name, (stub, _) in exercises(source).items()}
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


def solutions(root: Path) -> str:
    """Return the text of the JSON file with the solutions of every exercise, compressed; those of `OTHERS` included."""
    others = tomllib.loads((root / OTHERS).read_text(encoding="utf-8")) if (root / OTHERS).exists() else {}
    results: dict[str, dict[str, str]] = {}
    for source in sources(root):
        for name, (_, solution) in exercises(source).items():
            titled = {"A solution, with comments": solution.partition("\n")[2].strip(), **others.get(name, {})}
            results[name] = {
                title: b64encode(zlib.compress(text.encode(), 9)).decode() for title, text in titled.items()
            }
    return json.dumps(results, indent=1) + "\n"


def build(source: Path) -> tuple[str, str]:
    """Return the JSON of the learner's copy and of the checked copy; neither has a solution. Raises `NotebookError`."""
    exercises(source)  # raises the errors of exercises
    cells, expected, lab = read(source)
    learner: list[NotebookNode] = []
    checked: list[NotebookNode] = []
    runs = 0
    for place, cell in enumerate(cells):
        if SOLUTION in tags(cell):
            continue
        if is_first_task(cell, learner):
            checked.append(rules(source, len(learner)))
            learner.append(rules(source, len(learner)))
        if CHECKED not in tags(cell):
            learner.append(copy(cell, len(learner)))
        plain = copy(cell, len(learner) - 1)
        if CHECKED in tags(cell):
            plain.id = f"checked-{len(checked)}"
        if cell.cell_type == "code":
            runs += 1
            stored = [v4.new_output("stream", name="stdout", text=expected[place])] if place in expected else []
            plain.execution_count, plain.outputs = runs, stored
        checked.append(plain)
    metadata = KERNEL | ({"labkit": lab} if lab else {})
    return (text(headed(learner, source, lab), metadata), text(headed(checked, source, lab), metadata))


def copy(cell: NotebookNode, number: int) -> NotebookNode:
    """Return a cell as written to a file: with a number as id, since jupytext's are random, and cleaned metadata."""
    new: Callable[..., NotebookNode] = {
        "code": v4.new_code_cell,
        "markdown": v4.new_markdown_cell,
        "raw": v4.new_raw_cell,
    }[cell.cell_type]
    metadata = {key: value for key, value in sorted(cell.metadata.items()) if key != "lines_to_next_cell"}
    result: NotebookNode = new(cell.source, id=str(number), metadata=metadata)
    return result


def text(cells: list[NotebookNode], metadata: Mapping[str, Any]) -> str:
    """Return a notebook's JSON, which is the same for equal cells on every machine."""
    notebook = v4.new_notebook(cells=cells, metadata=dict(metadata), nbformat_minor=5)
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)).rstrip("\n") + "\n"


def sources(root: Path) -> list[Path]:
    """Return the paths of all notebook sources, in the order of the course."""
    return of_course(root / "notebooks" / "src", ".py")


def write(root: Path, built: Mapping[str, tuple[str, str]], *, only_checked: bool) -> None:
    """Write the built copies, and delete notebooks without a source; with `only_checked`, only checked copies."""
    for folder, which in (("notebooks", 0), ("checked", 1)):
        if only_checked and which == 0:
            continue
        (root / folder).mkdir(exist_ok=True)
        for stale in stale_copies(root / folder, built):
            stale.unlink()
        for name, copies in built.items():
            (root / folder / f"{name}.ipynb").write_text(copies[which], encoding="utf-8")


def stale_copies(folder: Path, built: Iterable[str]) -> list[Path]:
    """Return the notebooks in a folder that have no source."""
    return [path for path in sorted(folder.glob("*.ipynb")) if path.stem not in set(built)]


def differences(root: Path, built: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return a text for each difference between the learners' copies on disk and the built ones."""
    results = [f"{path}: it has no source; delete it" for path in stale_copies(root / "notebooks", built)]
    for name, (learner, _) in built.items():
        path = root / "notebooks" / f"{name}.ipynb"
        if not path.exists():
            results.append(f"{path}: not built")
        elif (there := path.read_text(encoding="utf-8")) != learner:
            lines = difflib.unified_diff(there.splitlines(), learner.splitlines(), "is", "should be", lineterm="", n=0)
            results.append("\n".join([f"{path}: differs from its source", *list(lines)[:10]]))
    return results


def out_of_step(root: Path, *, write_it: bool) -> list[str]:
    """Return a sentence for each derived file (stubs, solutions, glossary, map, table) that differs from its sources.

    With `write_it` the files are written first. A file whose folder does not exist is skipped.
    """
    wrong = []
    pages = [(STUBS, stubs(root)), (SOLUTIONS, solutions(root)), (GLOSSARY, glossary.page())]
    if (root / COURSE).exists():
        page = (root / COURSE).read_text(encoding="utf-8")
        pages.append((COURSE, between(page, MAP, course_map(root), END_OF_MAP)))
    if (root / TABLE).exists():
        page = (root / TABLE).read_text(encoding="utf-8")
        pages.append((TABLE, between(page, BEGIN_TABLE, exercise_table(), END_TABLE)))
    for place, wanted in pages:
        path = root / place
        if not path.parent.exists():
            continue
        if write_it:
            path.write_text(wanted, encoding="utf-8")
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        wrong += [] if there == wanted else [f"{path}: differs from its sources"]
    return wrong


def hard_to_read(root: Path) -> list[str]:
    """Print the estimated minutes of every notebook, and return a sentence for each that is too long."""
    readings, wrong = {}, []
    for source in sources(root):
        cells, expected, _ = read(source)
        readings[source.stem] = reading_of(cells, expected)
        wrong += [f"{source}: {each}" for each in readings[source.stem].complaints()]
    if readings:
        print(table(readings))
    return wrong


def printed(source: Path, folder: Path) -> list[str]:
    """Run a notebook, and return the output of each of its checked cells, in order."""
    from nbclient import NotebookClient

    # Not through `build`: a cell that is to be accepted for the first time has no expected text yet.
    notebook = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    notebook.metadata.update(KERNEL)
    # Neither copy has a solution: with one, `lab.check` would say that it passed.
    notebook.cells = [cell for cell in notebook.cells if SOLUTION not in tags(cell)]
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute(
        env={**os.environ, UNATTENDED: "1"}
    )
    return [said(cell.outputs) for cell in notebook.cells if CHECK in tags(cell)]


def accept(source: Path, texts: list[str]) -> None:
    """Replace the expected texts of a source file, and leave every other line unchanged."""
    kept: list[str] = []
    waiting = list(texts)
    replacing = False
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("# %%"):
            replacing = line.startswith("# %% [raw]") and EXPECTED in line
            kept.append(line)
            if replacing:
                kept += [f"# {line}".rstrip() for line in waiting.pop(0).splitlines()] + [""]
        elif not replacing:
            kept.append(line)
    if waiting:
        raise NotebookError(
            f"{source}: {len(waiting)} checked cell(s) without a raw cell tagged {EXPECTED} after them; add one"
        )
    source.write_text("\n".join(kept).rstrip("\n") + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Build, check or accept; return 1 if a copy on disk differs from its source or a notebook is too long."""
    parser = argparse.ArgumentParser(description="Build the notebooks from notebooks/src.")
    parser.add_argument(
        "--check",
        action="store_true",
        help="only compare the learners' copies; write the checked ones; say how the notebooks read",
    )
    parser.add_argument(
        "--accept", metavar="NN_topic", help="run one notebook and take over what its checked cells print"
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    root: Path = options.root
    try:
        if options.accept:
            source = root / "notebooks" / "src" / f"{options.accept}.py"
            accept(source, printed(source, root / "notebooks"))
        built = {source.stem: build(source) for source in sources(root)}
    except NotebookError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    write(root, built, only_checked=options.check)
    wrong = differences(root, built) + out_of_step(root, write_it=not options.check)
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    if wrong:
        sys.stderr.write("Run `make notebooks` and commit what it writes.\n")
    hard = hard_to_read(root) if options.check else []
    sys.stderr.writelines(f"{line}\n" for line in hard)
    print(f"{len(built)} notebooks, {'in step with their sources' if not wrong else 'out of step'}")
    return 1 if wrong or hard else 0


if __name__ == "__main__":
    sys.exit(main())
