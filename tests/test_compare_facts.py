"""A comparison: results by name, and those facts of simulated runs that were asked for as columns."""

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput


def test_facts_stand_before_what_is_broken():
    compared = lab.compare(
        first=lab.replay("barriers.sink_offset_a"),
        second=lab.replay("barriers.sink_offset_b"),
        facts=["counts", "checkpoint_offsets"],
    )
    assert compared.columns == ["counts", "checkpoint offsets", "broken"]
    assert [row["counts"] for row in compared.rows.values()] == ["hello=3 world=1", "hello=1 world=1"]
    assert "hello=3 world=1" in compared._repr_mimebundle_()["text/html"]


def test_what_a_run_does_not_know_is_a_dash():
    alone = lab.compare(alone=lab.replay("snapshot.restored_alone"), facts=["snapshot_accounts"])
    assert alone.rows["alone"]["snapshot accounts"] == "-"


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (lambda: lab.replay("barriers.sink_offset_a"), "did you mean 'counts'"),
        (lambda: lab.explore("snapshot", processes=2), "omit it, or compare"),
    ],
)
def test_an_unknown_fact_gets_one_sentence(result, complaint: str):
    with pytest.raises(InvalidInput, match=complaint):
        lab.compare(one=result(), facts=["count"])


@pytest.mark.parametrize(
    "given",
    [
        lambda run: ((run,), {}),
        lambda run: (([run, run],), {}),
        lambda run: ((run, run), {}),
        lambda run: (({1: run},), {}),
        lambda _: ((), {}),
    ],
)
def test_results_without_names_get_one_sentence(given):
    results, named = given(lab.replay("barriers.sink_offset_a"))
    with pytest.raises(InvalidInput, match=r"needs results by name, as in lab\.compare"):
        lab.compare(*results, **named)


def test_one_fact_needs_no_list():
    run = lab.replay("barriers.sink_offset_a")
    assert lab.compare(run=run, facts="counts").rows["run"]["counts"] == ("hello=3 world=1")


@pytest.mark.parametrize("facts", [5, [5], {"counts": 1}, None])
def test_what_is_no_name_of_a_fact_gets_one_sentence(facts):
    with pytest.raises(InvalidInput, match=r"as in facts=\[\"counts"):
        lab.compare(run=lab.replay("barriers.sink_offset_a"), facts=facts)
