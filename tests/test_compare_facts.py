"""Facts of simulated runs as columns of a comparison: those that were asked for, and no others."""

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
    assert [row["counts"] for row in compared.rows.values()] == [
        "hello=3 world=1",
        "hello=1 world=1",
    ]
    assert "hello=3 world=1" in compared._repr_mimebundle_()["text/html"]


def test_what_a_run_does_not_know_is_a_dash():
    alone = lab.compare(
        alone=lab.replay("snapshot.restored_alone"), facts=["snapshot_accounts"]
    )
    assert alone.rows["alone"]["snapshot accounts"] == "-"


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (lambda: lab.replay("barriers.sink_offset_a"), "did you mean 'counts'"),
        (lambda: lab.explore("snapshot", processes=2), "leave facts= out"),
    ],
)
def test_an_unknown_fact_gets_one_sentence(result, complaint: str):
    with pytest.raises(InvalidInput, match=complaint):
        lab.compare(one=result(), facts=["count"])
