"""Repeat earlier calls of a learner's function in another process, as after a real restart.

    python -m labkit.teach.exercises.restarted

is that process: it reads cells and calls as JSON from standard input and prints the replies. Python salts the hashes of
text anew in each process. So `hash("orders")`, the order of a set of texts, and whatever a cell draws at random when it
runs differ after a restart, although they do not change while a notebook is open.
"""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from labkit.core.errors import LabError
from labkit.host.browser import IN_BROWSER
from labkit.host.processes.own_python import own_python
from labkit.teach.exercises.alone import execute, fresh
from labkit.teach.exercises.asking import shown
from labkit.teach.exercises.contract import Exercise
from labkit.teach.exercises.namespace import InNotebook

MOST = 64
"""The approximate number of calls that are repeated."""
SECONDS = 60.0
"""The number of seconds that the other process may take."""


def changed(exercise: Exercise, answer: InNotebook, sources: Sequence[str], place: int = -1) -> str:
    """Return a sentence on a call that is answered differently in a new process; empty if there is none.

    The text is also empty if the process fails or, as in a browser, cannot be started. `sources` are the notebook's
    cells, which run in the new process; the cell at `place` defines the function.
    """
    asked = list(answer.replies.values())
    asked = asked[:: max(1, len(asked) // MOST)]
    if not asked or IN_BROWSER:
        return ""
    first = list(sources[: place + 1 or None])
    cells = [first, list(sources[len(first) :])]
    task = {"name": answer.name, "sources": cells, "questions": [question for question, _ in asked]}
    environment = os.environ | {"PYTHONHASHSEED": str(1 + secrets.randbelow(2**32 - 1))}
    words = own_python("-m", "labkit.teach.exercises.restarted")
    try:
        ended = subprocess.run(
            words, input=json.dumps(task).encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        replies = json.loads(ended.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return ""
    for ((kind, *arguments), before), after in zip(asked, replies, strict=False):
        if after is not None and not exercise.same(after[0], before):
            call = f"{answer.name}({', '.join(map(shown, arguments))})" if kind == "call" else answer.name
            what = f"answered {shown(before)}, and {shown(after[0])} after a restart"
            return (
                f"{call} {what}: Python's hash() and the order of a set change with every restart, as does whatever a "
                "cell draws at random or keeps of earlier calls. An answer must depend on its arguments alone."
            )
    return ""


def main() -> None:
    """Run a notebook's cells, repeat earlier calls of the learner's function, and print the function's answers as JSON.

    Standard input has a JSON object. `name` is the function's name, and `questions` are the calls. `sources` is a pair:
    the cells up to the one that defines the function, and the cells after it.
    """
    channel = os.dup(1)
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    namespace = fresh()
    first, later = task["sources"]
    for source in first:
        execute(source, namespace)
    kept = {name: value for name, value in namespace.items() if name == task["name"]}
    for source in later:
        execute(source, namespace)
    # A later cell may use the answer's name for something else; names that the answer uses have their last value.
    namespace |= kept
    answer = InNotebook(task["name"], namespace)
    with os.fdopen(channel, "w") as output:
        json.dump([_reply(answer, question) for question in task["questions"]], output)


def _reply(answer: InNotebook, question: list[Any]) -> list[Any] | None:
    kind, *arguments = question
    try:
        return [answer.step(*arguments) if kind == "step" else answer.call(*arguments)]
    except LabError:
        return None


if __name__ == "__main__":
    main()
