"""Measure how many wrong answers the checks of the exercises detect, for each exercise and in two ways.

*Wrong solutions* are misconceptions of people: `tests/grading/wrong/NN-word/name.py`, with the misconception in the
first line and in the second a part of the message that only this solution gets; or a table of `changes.toml` in that
folder, if the solution differs from a right one in a few places. One is detected ("killed") if the public variants fail
it, and so do the hidden ones of every seed. *Mutants* are the reference solutions with one thing
changed (`tools/mutants.py`). One is killed if the hidden variants of every seed fail it, or if it replies otherwise
after a restart. Changes that are no mistake are listed with their reason in `tests/grading/equivalents.toml`; no other
mutant may survive.

`python tools/kill_rate.py` prints both rates and exits 1 if one is not complete; `--seeds 2` tries fewer seeds, `--only
05-recovery` one exercise.
"""

import argparse
import contextlib
import io
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import build_notebooks
from mutants import Mutant, mutants

from labkit.core.errors import MissingSolution
from labkit.grading.hidden import variants
from labkit.teach.exercises.check import judged
from labkit.teach.exercises.contract import Answer, AnswerFailed, Finding, Kind, Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES, find
from labkit.teach.exercises.restarted import changed

ROOT = Path(__file__).parent.parent
WRONG = ROOT / "tests" / "grading" / "wrong"
EQUIVALENTS = ROOT / "tests" / "grading" / "equivalents.toml"
SEEDS = range(1, 6)
"""The seeds that are tried by default."""


def run(code: str) -> dict[str, Any]:
    """Execute a cell in a new namespace and return the namespace; the cell's output is discarded."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "<cell>", "exec"), namespace)  # noqa: S102  # files of this project
    return namespace


@dataclass(frozen=True)
class Wrong:
    """A wrong solution of an exercise; only its message contains `says`."""

    exercise: str
    name: str
    misconception: str
    says: str
    source: str

    def __str__(self) -> str:
        return f"{self.exercise}/{self.name}"


@cache
def wrong_solutions() -> list[Wrong]:
    """Return all wrong solutions, ordered by exercise and name."""
    own = [_in_file(path) for path in WRONG.glob("*/*.py")]
    changed_ones = [wrong for path in WRONG.glob("*/changes.toml") for wrong in _in_table(path)]
    return sorted([*own, *changed_ones], key=str)


def _in_file(path: Path) -> Wrong:
    source = path.read_text(encoding="utf-8")
    match = re.match(r"# misconception: (.+)\n# says: (.+)\n", source)
    if match is None:
        raise ValueError(f"{path}: the first two lines must be `# misconception: ...` and `# says: ...`.")
    return Wrong(path.parent.name, path.stem, match[1], match[2], source)


def base(path: Path) -> str:
    """Return the right solution that the tables of a `changes.toml` change."""
    return str(tomllib.loads(path.read_text(encoding="utf-8"))["base"])


def _in_table(path: Path) -> Iterator[Wrong]:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    right, usual = tables.pop("base"), tables.pop("was", None)
    for name, table in tables.items():
        source = right
        places, others = ([each] if isinstance(each, str) else each for each in (table.get("was", usual), table["is"]))
        for was, instead in zip(places, others, strict=True):
            if right.count(was) != 1:
                raise ValueError(f"{path}, {name}: `base` must have {was!r} once, and has it {right.count(was)} times.")
            source = source.replace(was, instead)
        yield Wrong(path.parent.name, name, table["misconception"], table["says"], source)


def code_items() -> list[str]:
    """Return the names of the exercises whose answer is a function."""
    return [
        name
        for name, exercise in EXERCISES.items()
        if exercise.kind in {Kind.COMPLETE, Kind.INVARIANT} or name == "09b-timeout"
    ]


def public(exercise: str, source: str) -> Finding:
    """Return the last finding of the visible check. Raises `ValueError` for a solution that counts as not attempted."""
    with contextlib.redirect_stdout(io.StringIO()):
        findings = judged(find(exercise), run(source))
    if findings is None:
        raise ValueError(f"{exercise}: this solution counts as not attempted; define its answer.")
    return findings[-1]


def hidden(wrong: Wrong, seed: int) -> Finding | None:
    """Return the first failed finding of the hidden variants of a seed; None if all pass."""
    exercise = find(wrong.exercise)
    answer = InNotebook(exercise.answer, run(wrong.source))
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            findings = (exercise.judge(answer, variant) for variant in variants(exercise.name, seed))
            return next((each for each in findings if not each.passed), None)
        except AnswerFailed as error:
            return Finding(False, str(error), general="The answer failed.")  # noqa: FBT003  # it begins with that


def is_killed(wrong: Wrong, seeds: Sequence[int] = SEEDS) -> bool:
    """Return whether a wrong solution fails the public variants and the hidden ones of every seed."""
    return not public(wrong.exercise, wrong.source).passed and all(hidden(wrong, seed) for seed in seeds)


@cache
def solutions() -> dict[str, str]:
    """Return the reference solution of every exercise by name, from the notebooks' sources."""
    return {
        name: solution
        for source in build_notebooks.sources(ROOT)
        for name, (_, solution) in build_notebooks.exercises(source).items()
    }


class Equivalents:
    """The mutants that are no mistake, by exercise and name with the reason, as the file lists them."""

    def __init__(self, path: Path = EQUIVALENTS) -> None:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        self.reasons: dict[str, dict[str, str]] = read

    def __contains__(self, mutant: tuple[str, Mutant]) -> bool:
        name, changed = mutant
        return changed.name in self.reasons.get(name, {})

    def unknown(self, name: str, made: Sequence[Mutant]) -> list[str]:
        """Return the listed names that no mutant in `made` has, because the solution has changed since."""
        names = {mutant.name for mutant in made}
        return [each for each in self.reasons.get(name, {}) if each not in names]


class MutantJudge:
    """Judges the mutants of one exercise by its hidden variants, and begins with the variants that are likely to kill.

    A variant that a mutant passes costs a whole search, and one that kills it costs little. So the variants that have
    killed most mutants so far come first.
    """

    def __init__(self, name: str) -> None:
        self.exercise = find(name)
        self._kills: Counter[str] = Counter()

    def is_killed(self, mutant: Mutant, seed: int) -> bool:
        """Return whether a variant of a seed fails the mutant, or a restart in another process changes its replies."""
        try:
            answer = InNotebook(self.exercise.answer, run(mutant.source))
        except Exception:  # noqa: BLE001 - a mutant that raises an error counts as killed
            return True
        ordered = sorted(variants(self.exercise.name, seed), key=lambda each: -self._kills[each.name])
        for variant in ordered:
            if not self._passes(answer, variant):
                self._kills[variant.name] += 1
                return True
        return bool(changed(self.exercise, answer, [mutant.source]))

    def _passes(self, answer: Answer, variant: Variant) -> bool:
        try:
            return self.exercise.judge(answer, variant).passed
        except (AnswerFailed, MissingSolution):
            return False


def surviving(name: str, made: Sequence[Mutant], seeds: Sequence[int]) -> Iterator[tuple[Mutant, list[int]]]:
    """Yield each mutant of an exercise that survives for at least one seed, with these seeds."""
    judge = MutantJudge(name)
    for mutant in made:
        alive = [seed for seed in seeds if not judge.is_killed(mutant, seed)]
        if alive:
            yield mutant, alive


def wrong_rate(names: Sequence[str], seeds: Sequence[int]) -> bool:
    """Print how many wrong solutions fail; return whether all do."""
    tried = [wrong for wrong in wrong_solutions() if wrong.exercise in names]
    survivors = [wrong for wrong in tried if not is_killed(wrong, seeds)]
    alive = Counter(wrong.exercise for wrong in survivors)
    for name, count in Counter(wrong.exercise for wrong in tried).items():
        print(f"{name:12} {count - alive[name]} of {count} wrong solutions")
    for wrong in survivors:
        print(f"SURVIVES {wrong}")
    killed = len(tried) - len(survivors)
    print(f"kill rate: {killed} of {len(tried)} wrong solutions, {_percent(killed, len(tried))}, {len(seeds)} seeds")
    return not survivors


def mutant_rate(names: Sequence[str], seeds: Sequence[int], every: int = 1) -> bool:
    """Print how many mutants that are mistakes fail; return whether all do, and every listed equivalent mutant exists.

    With `every`, only one in `every` mutants of each exercise is tried, which the output states.
    """
    equivalents, judged_mutants, killed, is_whole = Equivalents(), 0, 0, True
    for name in names:
        candidates = mutants(solutions()[name])
        wrong = [mutant for mutant in candidates if (name, mutant) not in equivalents][::every]
        survivors = list(surviving(name, wrong, seeds))
        rest = f"{len(candidates) - len(wrong)} more are no mistakes" if every == 1 else "the others were not tried"
        print(f"{name:12} {len(wrong) - len(survivors)} of {len(wrong)} mutants; {rest}", flush=True)
        for mutant, alive in survivors:
            print(f"SURVIVES {name} with seed {', '.join(map(str, alive))}: {mutant.name}")
        for gone in equivalents.unknown(name, candidates):
            print(f"UNKNOWN  {name}: there is no mutant {gone!r}; correct {EQUIVALENTS.name}.")
            is_whole = False
        judged_mutants += len(wrong)
        killed += len(wrong) - len(survivors)
        is_whole = is_whole and not survivors
    sampled = f", sampled, one in {every}" if every > 1 else ""
    rate = _percent(killed, judged_mutants)
    print(f"kill rate: {killed} of {judged_mutants} mutants, {rate}, {len(seeds)} seeds{sampled}")
    return is_whole


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none tried"


def main(words: Sequence[str] = ()) -> int:
    """Print both rates for each exercise; return 1 if a wrong solution or a mutant survives, otherwise 0."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS), metavar="N")
    parser.add_argument("--only", action="append", metavar="NN-word")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="a sample: every Nth mutant of each exercise")
    chosen = parser.parse_args(words)
    names = [find(name).name for name in chosen.only] if chosen.only else code_items()
    seeds = range(1, 1 + chosen.seeds)
    all_wrong, all_mutants = wrong_rate(names, seeds), mutant_rate(names, seeds, max(chosen.every, 1))
    return 0 if all_wrong and all_mutants else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
