"""The recipes for stores: real kills where they tell most do no harm, and a broken recipe is refuted by the same kills.

What each must show was written down before it was run, in data/recipes/recipes.toml.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from choosing import variant_but
from pipeline_environments import ENVIRONMENTS, environment_folder
from psycopg.conninfo import conninfo_to_dict
from recipes import RECIPES, copied, http_service, recipes, redis_server, report_on

from labkit.core.errors import ServiceUnavailable
from labkit.core.judge import Guarantee, Outcome
from labkit.crashtest.report import Report
from labkit.teach.engine_pipelines import PROJECT

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "recipes.md"
IN_SHORT = ("sqlite", "postgres", "kafka")
"""The recipes that continuous integration tries: a file, and two kinds of servers."""
MOST_RUNS = 8
"""A recipe's test makes so many runs with a crash at most."""

BROKEN = {
    "sqlite": (
        "        if marker.rowcount:\n",
        "        db.commit()\n        if marker.rowcount:\n",
        ["create output/rows.db-journal #2"],
        "lost",
    ),
    "redis": (
        "        transaction.set(marker, batch)\n        transaction.execute()",
        "        transaction.execute()\n        store.set(marker, batch)",
        ["send <server> SET #1"],
        "duplicate",
    ),
}
"""Recipes whose marker another text puts into a transaction of its own: the text, the other one, a point, the harm."""


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A recipe."""
    return str(request.param)


@pytest.fixture
def server(
    watched_calls: None, name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The server that a recipe needs, as the names of points call it; empty if it needs none."""
    needs = recipes()[name]["needs"]
    try:
        if needs == "postgres":
            address = request.getfixturevalue("postgres")
            monkeypatch.setenv("POSTGRES", address)
            yield f"unix:{conninfo_to_dict(address)['host']}/.s.PGSQL.5432"
        elif needs == "kafka":
            address = request.getfixturevalue("kafka").status().address
            monkeypatch.setenv("KAFKA", address)
            yield address
        elif needs == "redis":
            with redis_server(tmp_path) as address:
                monkeypatch.setenv("REDIS", f"redis://{address}")
                yield address
        elif needs == "http":
            with http_service(tmp_path) as address:
                monkeypatch.setenv("SERVICE", address)
                yield address.removeprefix("http://")
        else:
            yield ""
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))


def violated(report: Report) -> set[str]:
    axes = report.summary.axes
    return {axis for axis, outcome in axes.items() if outcome is Outcome.VIOLATED}


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("name", variant_but(IN_SHORT, recipes()), indirect=True)
def test_kills_where_they_tell_most_do_no_harm(
    name: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(tmp_path, monkeypatch)
    report = report_on(name, server)
    print(report.text())
    assert violated(report) == set()
    assert {each.id: each.unknown for each in report.summary.unknown()} == {}
    assert report.summary.guarantee == recipes()[name]["guarantee"]
    coverage = report.summary.coverage
    assert coverage.hit == coverage.planned >= len(recipes()[name]["shown_by"])


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("name", variant_but(["sqlite"], BROKEN), indirect=True)
def test_a_marker_in_a_transaction_of_its_own_is_refuted(
    name: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = copied(tmp_path, monkeypatch) / f"to_{name}.py"
    right, wrong, points, harm = BROKEN[name]
    text = program.read_text(encoding="utf-8")
    assert text.count(right) == 1
    program.write_text(text.replace(right, wrong), encoding="utf-8")
    # A job that has lost rows ends well, and labkit starts it again until the limit has passed.
    report = report_on(name, server, limit=10, only=[each.replace("<server>", server) for each in points])
    print(report.text())
    assert harm in violated(report)


def test_every_recipe_has_a_file_a_prediction_and_a_row_on_the_page() -> None:
    assert {path.name for path in RECIPES.glob("to_*.py")} == {f"to_{name}.py" for name in recipes()}
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\(.*$", page, re.MULTILINE)
    assert rows == list(recipes())
    for name, each in recipes().items():
        link = f"[{name}](../../data/recipes/to_{name}.py)"
        assert f"| {link} | {each['mechanism']} | {each['mistake']} | {each['verdict']} |" in page
        assert each["guarantee"] in {guarantee.value for guarantee in Guarantee}
        assert 1 <= len(each["shown_by"]) <= MOST_RUNS
        assert each["needs"] in {"", "postgres", "kafka", "redis", "http"}


@pytest.mark.parametrize("name", recipes())
def test_every_package_of_a_recipe_is_in_its_environment(name: str) -> None:
    each = recipes()[name]
    if each["environment"] == PROJECT:
        lock = RECIPES.parents[1] / "requirements.lock"
    else:
        assert environment_folder(each["environment"]).name.startswith(each["environment"])
        lock = ENVIRONMENTS / f"{each['environment']}.lock"
    locked = {line.partition("==")[0] for line in lock.read_text(encoding="utf-8").splitlines() if "==" in line}
    assert set(each["packages"]) <= locked


def test_the_rows_that_should_come_out_are_those_of_the_input() -> None:
    batches = [path.read_text(encoding="utf-8") for path in sorted((RECIPES / "input").iterdir())]
    assert len(batches) == 3
    assert "".join(batches) == (RECIPES / "expected.jsonl").read_text(encoding="utf-8")
