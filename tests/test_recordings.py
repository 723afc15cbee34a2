"""Which cells need real processes, what is played for them in a browser, and what is refused there."""

import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import build_notebooks
import lite_site
import nbformat
import pytest
import recordings

import labkit.teach.recordings as played
from labkit import lab
from labkit.core.errors import NeedsInstallation, ServiceUnavailable
from labkit.teach.exercises.namespace import TooLong, _line_limit
from labkit.teach.recordings import OnlyRecorded, changed, only_defines

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SIMULATED = {
    *("01_guarantees", "02_delivery", "03_snapshots", "04_barriers", "04b_stops", "05_two_phase_commit", "06_sinks")
}
"""Notebooks that run whole in a browser."""
PARAMETERS = 'sink = "append"  # or two_phase, see below; notebook 01 explains idempotent, batch_marker and wal'


@cache
def real(name: str) -> list[str]:
    return list(recordings.real(nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)))


def test_the_simulated_notebooks_need_no_recording_and_every_other_does() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb") if not real(path.stem)} == SIMULATED


def test_a_cell_that_uses_the_result_of_a_real_run_needs_a_recording_too() -> None:
    begins = [source.partition("(")[0] for source in real("00_start")]
    assert begins[:2] == ["outcome = lab.crash", "lab.answer"]
    assert "lab.strip" not in begins
    assert "lab.compare" not in begins


def test_an_exercise_is_never_recorded() -> None:
    for path in NOTEBOOKS.glob("*.ipynb"):
        assert not [source for source in real(path.stem) if "# exercise" in source or "lab.check(" in source]


def test_a_cell_that_was_not_recorded_or_failed_has_no_date(tmp_path: Path) -> None:
    path = NOTEBOOKS / "00_start.ipynb"
    found = recordings.recordings(tmp_path, [path])
    assert {made for made, _, _ in found.values()} == {""}
    _, text = build_notebooks.build(NOTEBOOKS / "src" / "00_start.py")
    done = nbformat.reads(text, as_version=4)
    failed = next(cell for cell in done.cells if cell.source.startswith("outcome = lab.crash"))
    failed.outputs = [nbformat.v4.new_output("error", ename="JobFailed", evalue="it never ended", traceback=[])]
    recordings.keep(tmp_path, "00_start", done)
    found = recordings.recordings(tmp_path, [path])
    dates = {source.partition("(")[0]: (made, questions) for source, (made, _, questions) in found.items()}
    assert dates["outcome = lab.crash"] == ("", [])
    made, questions = dates["lab.answer"]
    assert "Spark 4.2" in made
    assert "Kafka" not in made  # which this notebook does not use
    assert questions == ["00-second-rows"]


def test_a_cell_that_only_defines_names_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = {path.stem: [*filter(only_defines, real(path.stem))] for path in NOTEBOOKS.glob("*.ipynb")}
    assert [source.split()[0:2] for source in silent.pop("12_engines")] == [
        ["import", "json"],
        ["JOB", "="],
        ["def", "shop(write_batch):"],
    ]
    assert silent["00_start"] == silent["08_postgres"] == []
    shell = SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=[""]), user_ns={})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    sources = ["import subprocess", "job = subprocess.run([])"]
    monkeypatch.setattr(played, "recordings", lambda: dict.fromkeys(sources, played.Recording("today", [], [])))
    outputs = [(played.play(source), capsys.readouterr().out)[1] for source in sources]
    assert [text.partition(",")[0] for text in outputs] == ["", "Recorded"]
    assert set(shell.user_ns) == {"subprocess", "job"}


def test_a_recording_is_refused_when_the_learner_changed_what_it_uses() -> None:
    crash = next(source for source in real("00_start") if source.startswith("outcome"))
    parameters = next(
        cell.source
        for cell in nbformat.read(NOTEBOOKS / "00_start.ipynb", as_version=4).cells
        if "parameters" in cell.metadata.get("tags", ())
    )
    assert changed(crash, []) == ""
    assert changed(crash, ["from labkit import lab", parameters]) == ""
    assert changed(crash, [parameters, 'sink = "two_phase"']) == "sink"
    assert changed(crash, ['sink = "two_phase"', parameters]) == ""
    # Also through a cell between them.
    assert changed("query.stop()", ["query = start(sink)", parameters]) == "query"


def test_what_only_a_real_run_gives_can_be_shown_but_not_used() -> None:
    outcome = OnlyRecorded("outcome")
    assert "`outcome` is the result of a real run" in repr(outcome)
    for use in (lambda: outcome.verdict, lambda: outcome["x"], outcome, lambda: list(outcome)):
        with pytest.raises(NeedsInstallation, match="pip install"):
            use()


def test_in_a_browser_a_missing_function_of_lab_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_there(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="psutil")

    monkeypatch.setattr(lab, "IN_BROWSER", True)
    monkeypatch.setattr(lab, "import_module", none_there)
    monkeypatch.delitem(vars(lab), "panel", raising=False)
    with pytest.raises(NeedsInstallation, match=r"lab\.panel needs real processes.*pip install 'labkit\[lab\]'"):
        lab.panel  # noqa: B018  # looking it up imports it
    monkeypatch.undo()
    monkeypatch.setattr(lab, "IN_BROWSER", True)
    monkeypatch.setitem(sys.modules, "labkit.host.doctor", None)  # imported late, and there without its packages
    monkeypatch.delitem(vars(lab), "doctor", raising=False)
    with pytest.raises(NeedsInstallation, match=r"lab\.doctor needs real processes"):
        lab.doctor()
    monkeypatch.delitem(vars(lab), "doctor")


def test_without_signals_an_endless_answer_is_stopped_at_a_line() -> None:
    with pytest.raises(TooLong), _line_limit(0.1):
        exec("while True:\n    pass", {})


def test_without_a_network_the_build_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(ServiceUnavailable, match=r"environment site could not .*connect this machine to the network"):
        lite_site.fetched()
    assert list((tmp_path / "labkit" / "lite").iterdir()) == []
