"""A small course for the tests of the grader: three exercises that are judged and one that is read by a person."""

import random

from labkit.teach.exercises.contract import Answer, Exercise, Finding, Kind, Level, Plain, Variant

COURSE = "sample"
NOTEBOOKS = "notebooks"
NOTEBOOK = "01_sample"


def differs(name: str, arguments: list[Plain], got: Plain, right: Plain) -> Finding | None:
    if type(got) is type(right) and got == right:
        return None
    message = f"{name} gives another value."
    return Finding(passed=False, message=message, observed=repr(got), expected=repr(right), general=message)


def judge_double(answer: Answer, variant: Variant) -> Finding:
    answer.expect([number] for number in variant["numbers"])
    for number in variant["numbers"]:
        if wrong := differs("double", [number], answer.call(number), 2 * number):
            return wrong
    return Finding(passed=True, message="")


def judge_dedup(answer: Answer, variant: Variant) -> Finding:
    table: list[Plain] = []
    for record in variant["records"]:
        if wrong := differs("seen", [table, record], answer.call(table, record), record in table):
            return wrong
        if record not in table:
            table.append(record)
    for _ in range(variant["rounds"]):
        answer.call(table, variant["records"][0])
    return Finding(passed=True, message="")


def judge_setting(answer: Answer, variant: Variant) -> Finding:
    value = answer.value()
    if type(value) is dict and type(value.get("interval")) is int and value["interval"] * variant["steps"] <= 60:
        return Finding(passed=True, message="")
    return Finding(passed=False, message="The interval is too long.", observed=repr(value), expected="at most a minute")


def judge_text(answer: Answer, variant: Variant) -> Finding:
    return Finding(passed=bool(answer.value()), message="")


def exercise(name: str, kind: Kind, answer: str, judge: object, *public: Variant, **more: object) -> Exercise:
    return Exercise(
        name=name, notebook=NOTEBOOK, title=f"About {answer}", kind=kind, level=Level.EASY, points=2, answer=answer,
        task="", hints=("one", "two"), lines=2, public=public, judge=judge, **more,
    )  # fmt: skip


EXERCISES = [
    exercise("01-double", Kind.COMPLETE, "double", judge_double, Variant("small", (("numbers", (1, 2)),)),
             withheld=("labkit.sim.models.two_phase_commit.model", "labkit.sinks.two_phase")),
    exercise("01-dedup", Kind.COMPLETE, "seen", judge_dedup,
             Variant("two", (("records", ("a", "b", "a")), ("rounds", 2)))),
    exercise("01-setting", Kind.CONFIGURE, "setting", judge_setting, Variant("ten", (("steps", 10),))),
    exercise("01-why", Kind.EXPLAIN, "why", judge_text, Variant("text"), by_hand=True),
]  # fmt: skip


def variants(name: str, seed: int) -> list[Variant]:
    chance = random.Random(f"{name} {seed}")
    if name == "01-double":
        return [Variant(f"hidden-{n}", (("numbers", tuple(chance.sample(range(10**6), 5))),)) for n in range(3)]
    if name == "01-dedup":
        words = [f"hidden-{chance.randrange(10**9)}" for _ in range(3)]
        return [
            Variant(f"hidden-{n}", (("records", tuple(chance.choices(words, k=9))), ("rounds", 3))) for n in range(3)
        ]
    if name == "01-setting":
        return [Variant(f"hidden-{n}", (("steps", steps),)) for n, steps in enumerate(chance.sample(range(2, 12), 3))]
    return []
