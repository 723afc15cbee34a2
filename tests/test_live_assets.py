"""What a live page loads, without a browser: the standard library is enough, and what is missing is one sentence."""

import json
import subprocess
import sys
from pathlib import Path

import build_site
import live_pages
import pytest

from labkit.core.errors import ServiceUnavailable
from labkit.sim.models import MODELS
from labkit.sim.scenarios import every

ALONE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from labkit.view.worker import Players
from labkit.sim.models import MODELS
from labkit.sim.trace import make
players = Players()
for name in MODELS:
    trace = str(make(name, {}).name) + "~" + str(make(name, {}).version) + "~~"
    ask = lambda message: json.loads(players.answer(json.dumps({"player": name, **message})))
    [answer] = ask({"start": {"trace": trace, "watch": "", "beside": None, "at": 0, "done": []}})
    story = answer["shown"]["story"]
    [news] = ask({"message": {"do": story["acts"][story["steps"][0]["e"][0]][0], "at": 0}})
    assert news["at"] == 1, news
    [file] = ask({"message": {"export": "svg", "at": 1}})
    assert file["file"]["text"].startswith("<svg")
print(len(MODELS))
"""


def test_the_worker_needs_the_packed_part_and_the_standard_library_alone(tmp_path: Path):
    archive = tmp_path / "labkit.zip"
    archive.write_bytes(live_pages.packed())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE, archive], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(len(MODELS))), done.stderr


def test_two_builds_pack_the_same_bytes():
    assert live_pages.packed() == live_pages.packed()


def test_without_npm_and_network_the_build_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_site.main(["--simulators", "--out", str(tmp_path / "site")]) == 69
    said = capsys.readouterr().err
    assert "npm, which fetches it, is missing" in said
    assert str(tmp_path / "cache" / "labkit" / f"{live_pages.PYODIDE}.tgz") in said
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho npm error network unreachable >&2\nexit 1\n", encoding="utf-8")
    npm.chmod(0o755)
    with pytest.raises(ServiceUnavailable, match=r"could not be fetched .*\(npm error network unreachable\)"):
        live_pages.pyodide()


def test_an_archive_with_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "labkit").mkdir()
    (tmp_path / "labkit" / f"{live_pages.PYODIDE}.tgz").write_bytes(b"something else")
    with pytest.raises(ServiceUnavailable, match="its checksum differs"):
        live_pages.pyodide()


def test_files_that_a_page_still_names_stay_when_others_are_built_anew(tmp_path: Path):
    for name in ("used", "kernel", "unused", live_pages.PYODIDE):
        (tmp_path / "live" / name).mkdir(parents=True)
    (tmp_path / "03_snapshots.html").write_text('<script src="live/used/live.js">', encoding="utf-8")
    kernel = tmp_path / "lite" / "kernel" / "1"
    kernel.mkdir(parents=True)
    (kernel / "pyodide.mjs").write_text("import '../../../live/kernel/python.js'", encoding="utf-8")
    live_pages.remove_unused(tmp_path)
    assert {path.name for path in (tmp_path / "live").iterdir()} == {"used", "kernel", live_pages.PYODIDE}


def test_every_simulator_has_a_page_and_every_named_run_a_link(tmp_path: Path):
    live_pages.write_pages(tmp_path, "")
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "simulators").glob("*.html")}
    assert pages.keys() == {"index", *MODELS}
    for name, scenario in every().items():
        assert f'href="#{name}"' in pages[scenario.model]
        assert f'href="{scenario.model}.html#{name}"' in pages["index"]
    for name in MODELS:
        shown = json.loads(pages[name].partition('<script type="application/json">')[2].partition("</script>")[0])
        assert shown["head"].startswith(f"{name}~")
        assert "live.js" not in pages[name]
