"""The order of writes: every design a second time by a plain enumerator, known verdicts, cheapest changes, mutants."""

import random
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import plain_orders as plain
import pytest
from all_designs import ALL, CLASSES, DESIGNS, EXACTLY_ONCE, GOLDEN, QUIET

from labkit.core.errors import InvalidInput
from labkit.core.judge import Outcome
from labkit.sim.explore import explore
from labkit.sim.models.orders import BLUEPRINT, model
from labkit.sim.models.orders.model import Orders, next_job
from labkit.sim.models.orders.state import NO_JOB, Fault, World, kept
from labkit.sim.orders import designs, merging, outcomes
from labkit.sim.orders.cheapest import cheapest, edited
from labkit.sim.orders.designs import every, why_not
from labkit.sim.orders.killing import killing
from labkit.sim.orders.merging import WORLDS, merged, searched
from labkit.sim.orders.named import NAMED, named
from labkit.sim.orders.outcomes import find
from labkit.sim.orders.table import every as squares
from labkit.sim.orders.table import under
from labkit.sim.trace import parse, replay
from labkit.sim.writes import Design, Leftover, Output, Recovery, Start, Write

DISTINCT = list({each.design: name for name, each in reversed(NAMED.items())}.values())
"""The first of the names of each design."""
ONCE, MORE, LESS, NONE = "exactly-once", "at-least-once", "at-most-once", "none"


# The first enumerator and the second.


def texts(most: int) -> set[str]:
    return {str(design) for design in every(most)}


@cache
def plain_readers(text: str, world: World, **more: object) -> frozenset:
    return frozenset(plain.histories(text, same_rows=world is World.SAME, **more))


def differences(most: int, sample: int, seed: int = 1) -> list[str]:
    """What the two enumerators tell differently: designs, then what readers of some of them saw."""
    first, second = texts(most), plain.designs(most)
    chosen = random.Random(seed).sample(sorted(first & second), sample)
    return [*sorted(first ^ second), *seen_otherwise(chosen)]


def seen_otherwise(texts: Iterable[str]) -> Iterator[str]:
    """The designs of which the readers of the two enumerators saw different things, each with its world."""
    for text, world in product(texts, WORLDS):
        if find(Design.parse(text), world).readers != plain_readers(text, world):
            yield f"{world}: {text}"


@pytest.mark.slow
def test_both_enumerators_find_the_same_designs():
    assert texts(ALL) == plain.designs(ALL)
    assert len(texts(ALL)) == DESIGNS


def test_each_design_comes_once_and_its_text_gives_it_back():
    found = list(every(4))
    assert len(set(found)) == len(found)
    assert [Design.parse(str(each)) for each in found] == found


@pytest.mark.slow
def test_readers_of_both_enumerators_saw_the_same():
    assert differences(5, sample=40, seed=random.Random(7).randrange(99)) == []


@pytest.mark.parametrize("most", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_how_many_designs_a_reader_can_tell_apart(most: int):
    found = merged(searched_once(most))
    assert (sum(len(each.designs) for each in found), len(found)) == GOLDEN[most]
    assert plain_classes(most) == len(found)


@pytest.mark.slow
@pytest.mark.variant
def test_readers_of_both_enumerators_saw_the_same_of_many_more():
    """Every design of at most three writes, and one in fifty of the others, whatever their size."""
    small = texts(3)
    chosen = [*sorted(small), *sorted(texts(ALL) - small)[::50]]
    assert len(chosen) > GOLDEN[3][0] + 300
    assert list(seen_otherwise(chosen)) == []


def test_the_page_has_the_golden_figures():
    page = (Path(__file__).parents[2] / "docs/order_of_writes.md").read_text(encoding="utf-8")
    said = " ".join(page.split())
    assert f"there are {DESIGNS:,} designs" in said
    assert f"{CLASSES} kinds" in said
    assert f"{EXACTLY_ONCE[0]:,} designs stay exactly-once" in said
    assert f"{EXACTLY_ONCE[1]} kinds" in said
    assert f"with {QUIET[0]} designs, readers never see anything wrong" in said


STRUCK = {
    Fault.LOST_ANSWER: (
        "plan > visible > decision; append; from decision",
        "visible+marker > decision; transaction; from decision, skips marked",
        "staged > visible+decision; transaction; from decision, finishes decided",
    ),
    Fault.EXPIRY: (
        "staged > decision > visible; transaction; from decision, finishes decided",
        "staged > visible > decision; transaction; from decision",
        "staged > visible+marker; transaction; from marker, finishes staged",
    ),
    Fault.LEASE: (
        "visible > notice; append; from notice",
        "visible+notice; transaction; from notice",
        "visible+marker > notice; transaction; from notice, skips marked",
    ),
    Fault.LAG: (
        "plan > visible+marker > decision; transaction; from decision, skips marked",
        "staged > decision > visible; transaction; from decision, finishes decided",
        "visible > decision; append; from decision, undoes undecided",
    ),
}
"""For each fault besides a crash, designs that it strikes: where it does harm, and where not."""


def struck_otherwise(**chosen: int) -> Iterator[str]:
    """The designs of which the readers of the two enumerators saw different things under a fault."""
    for (fault, texts), world in product(STRUCK.items(), WORLDS):
        for text in texts:
            found = find(Design.parse(text), world, fault=fault.value, **chosen)
            if found.readers != plain_readers(text, world, fault=fault.value, **chosen):
                yield f"{fault} {world}: {text}"


def test_readers_of_both_enumerators_saw_the_same_under_other_faults():
    assert list(struck_otherwise(crashes=1, faults=1)) == []


@pytest.mark.slow
def test_readers_of_both_enumerators_saw_the_same_under_many_other_faults():
    """Every square that is exactly-once under crashes, and the designs above with two faults."""
    assert list(struck_otherwise(crashes=1, faults=2)) == []
    once = [each for each in squares().values() if each and not why_not(each)]
    for design, fault in product(once, STRUCK):
        struck = under(design, fault)
        if struck is None or find(design, World.OTHER).guarantee.value != ONCE:
            continue
        found = find(struck, World.OTHER, fault=fault.value, crashes=1)
        assert found.readers == plain_readers(str(struck), World.OTHER, fault=fault.value, crashes=1, faults=1)
        more = find(struck, World.OTHER, fault=fault.value, crashes=1, faults=2)
        assert found.guarantee is more.guarantee, f"{fault}: {struck}"


# Mutants of enumerator, recovery and merging: the comparison goes red.


def forget_a_rule(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def change(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(designs, name, lambda *_: "")
        designs._recoveries.cache_clear()

    change.__name__ = f"forget_{name}"
    return change


def never_join(patch: pytest.MonkeyPatch) -> None:
    kept = designs._orders
    patch.setattr(
        designs, "_orders", lambda writes: (each for each in kept(writes) if all(len(one) == 1 for one in each))
    )


ENUMERATORS = [forget_a_rule("unwritten"), forget_a_rule("unread"), forget_a_rule("_why_not_written"), never_join]


@pytest.mark.parametrize("change", ENUMERATORS, ids=lambda each: each.__name__)
def test_a_broken_enumerator_is_noticed(change, monkeypatch: pytest.MonkeyPatch):
    change(monkeypatch)
    assert texts(3) != plain.designs(3)
    monkeypatch.undo()
    designs._recoveries.cache_clear()
    assert texts(3) == plain.designs(3)


def start_one_step_back(settings, process):
    job = next_job(settings, process)
    return job._replace(step=max(job.step - 1, 0))


def start_from_the_marker(settings, process):
    return next_job(settings, process._replace(decision=process.marker))


def finish_everything(_settings, process):
    return process.staged


def ignore_versions(settings, process):
    job = next_job(settings, process)
    newest = process.states[-1].total if process.states else job.base
    return job._replace(base=newest)


RECOVERIES = {
    "start_one_step_back": (model, "next_job", start_one_step_back),
    "start_from_the_marker": (model, "next_job", start_from_the_marker),
    "ignore_versions": (model, "next_job", ignore_versions),
    "finish_everything": (model, "to_finish", finish_everything),
    "finish_nothing": (model, "to_finish", lambda _settings, _process: NO_JOB),
    "ignore_the_plan": (model, "planned", lambda _process, _job: None),
    "skip_nothing": (Orders, "_is_marked", lambda _self, _process, _job: False),
    "undo_nothing": (Orders, "_undecided", lambda _self, _state: []),
    "undo_too_much": (Orders, "_undecided", lambda _self, state: [state.seen[index] for index in kept(state.seen)]),
    "skip_too_much": (Orders, "_is_marked", lambda _self, _process, _job: True),
}

RECOVERED = (
    "plan > state > visible > decision; append; from decision",
    "state > visible > decision; append; from decision, newest state",
    "plan > visible+marker > decision; transaction; from decision, skips marked",
    "visible > marker; upsert; from beginning, skips marked",
    "staged > state > decision > visible; transaction; from decision, finishes decided",
    "staged > visible > decision; append; from decision, finishes decided",
    "state+staged > visible > clean; append; from state, finishes decided",
    "plan > staged > visible > marker; append; from marker, finishes staged",
    "visible > decision; append; from decision, undoes undecided",
    "visible > decision; transaction; from decision, undoes undecided",
)
"""Designs whose restarts read everything that a restart can read."""


def test_both_enumerators_recover_alike():
    assert list(seen_otherwise(RECOVERED)) == []


@pytest.mark.parametrize("name", RECOVERIES)
def test_a_broken_recovery_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(*RECOVERIES[name])
    assert any(seen_otherwise(RECOVERED))


FAULTS = {
    "never_refused": ("_is_refused", lambda _self, _process: False),
    "always_committed_again": ("_is_committed", lambda _self, _process: False),
    "no_fault": ("_faults", lambda _self, _process: []),
    "nothing_marked": ("_is_marked", lambda _self, _process, _job: False),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_rule_of_a_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Orders, *FAULTS[name])
    assert any(struck_otherwise(crashes=1, faults=1))


MERGING = {
    "one world": lambda found: (found.replaces, found.digests[:1]),
    "guarantees only": lambda found: (found.replaces, found.guarantees),
    "no digest": lambda found: found.replaces,
    "nothing merged": id,
}


@cache
def plain_classes(most: int) -> int:
    return plain.classes(plain.designs(most))


@cache
def searched_once(most: int) -> list:
    return list(searched(every(most)))


@pytest.mark.slow
@pytest.mark.parametrize("name", MERGING)
def test_broken_merging_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch):
    found = searched_once(2)
    assert len(merged(found)) == plain_classes(2)
    monkeypatch.setattr(merging.Verdicts, "key", property(MERGING[name]))
    assert len(merged(found)) != plain_classes(2)


def test_an_upsert_is_no_append_though_a_reader_saw_the_same_values():
    added, replaced = (merging.verdicts(named(f"visible > decision; {output}")) for output in ("append", "upsert"))
    assert added.digests == replaced.digests
    assert added.key != replaced.key


# Rules of what makes sense, each shown to leave nothing out.


@pytest.mark.parametrize("name", [name for name in DISTINCT if not why_not(named(name))])
@pytest.mark.parametrize("write", [Write.NOTICE, Write.MARKER, Write.DECISION])
def test_a_write_that_nobody_reads_changes_nothing(name: str, write: Write):
    design = named(name)
    if write in design.writes:
        return
    for place in range(len(design.steps) + 1):
        more = (*design.steps[:place], (write,), *design.steps[place:])
        for world in WORLDS:
            assert find(design._replace(steps=more), world).readers == find(design, world).readers


def test_a_notice_is_a_decision_under_another_name():
    for text in ("visible > {}", "{} > visible", "plan > visible > {}; upsert"):
        told = {
            tuple(find(Design.parse(text.format(each)), world).readers for world in WORLDS)
            for each in ("notice", "decision")
        }
        assert len(told) == 1


def test_a_commit_leaves_nothing_to_remove():
    plainly = "staged > decision > visible{}; transaction; from decision, finishes decided"
    for world in WORLDS:
        with_clean = find(Design.parse(plainly.format(" > clean")), world)
        assert with_clean.readers == find(Design.parse(plainly.format("")), world).readers


def test_state_that_is_kept_by_version_changes_no_square_of_the_table():
    for design in filter(None, squares().values()):
        plan, *rest = design.steps
        more = design._replace(steps=(plan, (Write.STATE,), *rest))
        for world in WORLDS:
            assert find(more, world).readers == find(design, world).readers, str(design)


@pytest.mark.parametrize("name", DISTINCT)
def test_more_rows_and_more_crashes_show_nothing_new(name: str):
    for world in WORLDS:
        small, large = (find(named(name), world), find(named(name), world, rows=4, crashes=3))
        assert small.guarantee is large.guarantee
        assert set(small.witnesses) == set(large.witnesses)


# Known verdicts, and their witnesses.

KNOWN = {
    "spark-append": (MORE, MORE),
    "spark-upsert": (ONCE, ONCE),
    "spark-marker": (ONCE, ONCE),
    "spark-marker-after": (MORE, MORE),
    "spark-marker-before": (LESS, LESS),
    "delta-txn": (ONCE, ONCE),
    "delta-catalog": (ONCE, ONCE),
    "spark-files": (ONCE, ONCE),
    "spark-real-time": (MORE, MORE),
    "spark-async-progress": (MORE, MORE),
    "flink-two-phase": (ONCE, ONCE),
    "flink-kafka-expired": (LESS, LESS),
    "kafka-prepared": (ONCE, ONCE),
    "fluss-undo": (ONCE, ONCE),
    "flink-log": (MORE, MORE),
    "kafka-transaction": (ONCE, ONCE),
    "kafka-streams": (ONCE, ONCE),
    "consumer-late": (MORE, MORE),
    "share-group": (MORE, MORE),
    "consumer-early": (LESS, LESS),
    "offsets-in-store": (ONCE, ONCE),
    "offsets-retried": (MORE, MORE),
    "outbox": (MORE, MORE),
    "outbox-upsert": (ONCE, ONCE),
    "outbox-idempotent": (ONCE, ONCE),
    "millwheel": (ONCE, ONCE),
    "trident-transactional": (ONCE, ONCE),
    "trident-mixed": (ONCE, NONE),
    "trident-opaque": (ONCE, ONCE),
    "database-log": (ONCE, ONCE),
}
"""Written by hand: with the same rows again, and with others. Storm's documentation gives those of Trident."""


def test_what_somebody_built_guarantees_what_was_expected():
    told = {
        name: tuple(find(each.design, world, fault=each.fault.value).guarantee.value for world in WORLDS)
        for name, each in NAMED.items()
    }
    assert told == KNOWN


def test_a_fault_that_a_system_is_named_for_makes_its_verdict_weaker_or_its_repetition_longer():
    """All but two would be exactly-once without it; a lag and a lease only show an append's duplicates more often."""
    for name, each in NAMED.items():
        if each.fault is not Fault.NONE:
            alone, struck = (find(each.design, fault=fault.value) for fault in (Fault.NONE, each.fault))
            weaker = alone.guarantee.value == ONCE and struck.guarantee.value != ONCE
            assert weaker or alone.readers < struck.readers, name


HEALED = "plan > decision > marker > visible; upsert; from decision, skips marked"
"""A later upsert heals a lost one, so that the run with the fewest steps that loses has two crashes."""


@pytest.mark.parametrize("name", [*DISTINCT, HEALED])
def test_each_witness_replays_breaks_its_claim_and_uses_the_fewest_crashes(name: str):
    for world in WORLDS:
        design = named(name)
        found = find(design, world)
        for claim, trace in found.witnesses.items():
            walk = replay(parse(str(trace)))
            verdict = BLUEPRINT.facts(walk)["verdict"]
            assert verdict.properties[claim] is Outcome.VIOLATED
            crashes = sum(each.name == "crash" for each in trace.actions)
            fewer = find(design, world, crashes=crashes - 1)
            assert claim not in fewer.witnesses
            assert killing(claim, trace).count(" dies ") == 1
        explored = explore(outcomes.make(design, world))
        broken = {each.property for each in explored.violations}
        assert set(found.witnesses) <= broken
        assert not explored.never_reached


SENTENCES = {
    "spark-append": "The process dies after a row of its output and before its decision in step 1: "
    "rows are there twice.",
    "flink-log": "The process dies after a row of its output and before its marker in step 1: rows are there twice.",
    "consumer-early": "The process dies after its notice and before a row of its output in step 0: rows are lost.",
    "outbox": "The process dies after a row of its output and before the removal of its staged output in step 1: "
    "rows are there twice.",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_killing_crash_in_one_sentence(name: str):
    claim, trace = next(iter(find(named(name)).witnesses.items()))
    assert killing(claim, trace) == SENTENCES[name]


SCENARIOS = {
    "append_again": MORE,
    "upsert_jumps_back": ONCE,
    "marker_after_output": MORE,
    "marker_before_output": LESS,
    "marker_with_output": ONCE,
    "marker_without_plan": LESS,
    "decided_then_finished": ONCE,
    "decided_then_forgotten": LESS,
    "log_copied_twice": MORE,
    "state_ahead_of_note": NONE,
    "told_too_early": LESS,
    "taken_back": ONCE,
    "answer_lost": MORE,
    "decided_then_expired": LESS,
    "lease_ended": MORE,
    "plan_left_out": LESS,
}


def test_the_scenarios_end_as_they_say():
    told = {
        name: BLUEPRINT.facts(replay(BLUEPRINT.trace_of(name)))["verdict"].guarantee.value
        for name in BLUEPRINT.scenarios
    }
    assert told == SCENARIOS


# Cheapest changes.

CHEAPEST = [
    ("spark-append", {}, {"make the output upsert"}),
    (
        "spark-append",
        {"quietly": True, "held": ["plan", "decision"]},
        {"add marker into one atomic set with visible", "make the output transaction", "skip what is marked"},
    ),
    ("flink-log", {"quietly": True}, {"make the output transaction"}),
    ("trident-mixed", {}, {"add plan before visible+marker"}),
    ("spark-marker", {}, set()),
]


@pytest.mark.parametrize(("name", "asked", "edits"), CHEAPEST)
def test_the_cheapest_change_is_found(name: str, asked: dict, edits: set[str]):
    found = cheapest(named(name), **asked)
    assert edits in [set(each.edits) for each in found]
    assert {len(each.edits) for each in found} == {len(edits)}
    for change, world in product(found, WORLDS):
        left = find(change.design, world)
        assert left.guarantee.value == ONCE
        assert not (asked.get("quietly") and left.witnesses)


def test_no_cheaper_change_was_overlooked():
    """Every single edit of an append, tried one by one, against the answer that needs one."""
    design = named("consumer-early")
    single = [design._replace(steps=steps) for _, steps in edited(design.steps)]
    single += [design._replace(output=output) for output in Output]
    single += [
        design._replace(recovery=Recovery(start, newest, skips, leftover))
        for start, newest, skips, leftover in product(Start, (False, True), (False, True), Leftover)
        if sum(map(bool, (start is not Start.NOTICE, newest, skips, leftover is not Leftover.DROPPED))) == 1
    ]
    for each in single:
        try:
            made = Design.parse(str(each))
        except InvalidInput:
            continue
        assert {find(made, world).guarantee.value for world in WORLDS} != {ONCE}
    assert {len(each.edits) for each in cheapest(design)} == {2}


def test_a_write_that_is_held_is_not_touched():
    for change in cheapest(named("spark-append"), quietly=True, held=[Write.PLAN, Write.DECISION]):
        assert (Write.PLAN,) in change.design.steps
        assert (Write.DECISION,) in change.design.steps


# Bad input.

REFUSED = {
    "visibel": "there is no design 'visibel'; choose one of",
    "plan > visibel": "there is no write 'visibel'; did you mean 'visible'?",
    "plan > plan > visible": "'plan > plan > visible' has plan twice",
    "plan > decision": "'plan > decision' is not a design: no write makes output visible; change",
    "visible+marker; append": "'visible+marker; append' is not a design: the output append writes rows one by one, "
    "so visible cannot be atomic with another write; change",
    "visible > decision; append; from decision, undoes undecided, skips marked": "is not a design: recovery that "
    "undoes output can neither skip nor finish output; change",
    "visible > staged": "'visible > staged' is not a design: staged must come before visible; change",
    "visible > clean": "'visible > clean' is not a design: clean removes staged output, but nothing is staged; change",
    "visible; append; from decision": "is not a design: recovery starts from decision, which is not written; change",
    "visible; apend": "there is no kind of output 'apend'; did you mean 'append'?",
    "visible; append; from the start": "there is no record to restart from 'the start'; did you mean 'state'?",
    "visible; append; skip": "recovery: 'skip' is no known rule; did you mean 'skips marked'?",
    "a;b;c;d": "has more than three parts",
    "visible > " * 40: "the design has 400 characters, more than 300; write",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_design_is_refused_in_one_sentence(text: str):
    with pytest.raises(InvalidInput) as refused:
        named(text)
    assert REFUSED[text] in str(refused.value)
    assert "\n" not in str(refused.value)
