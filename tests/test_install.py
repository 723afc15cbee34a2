"""The installer reads the locks whole, says what failed, and falls back from uv to pip."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import install
import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-java.lock"])
def test_every_entry_of_a_lock_is_read_with_its_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    read = install.entries(ROOT / lock)
    assert [name for name, _ in read] == re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE)
    assert "".join(lines for _, lines in read) == "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("#")
    )


def test_the_build_tools_are_locked() -> None:
    assert {name for name, _ in install.entries(ROOT / "requirements.lock")} >= install.BUILD_TOOLS


def test_a_failed_step_tells_its_last_lines(tmp_path: Path) -> None:
    code = "print('a' * 3); print('no space left'); raise SystemExit(2)"
    step = install.Step("Installing PySpark", [sys.executable, "-c", code], tmp_path)
    with pytest.raises(install.StepFailed, match=r"(?s)Installing PySpark failed; its last lines:\naaa\nno space left"):
        install.wait_for([step], lambda: "")


def test_progress_is_told_while_a_step_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "HEARTBEAT_SECONDS", 0.2)
    step = install.Step("Waiting", [sys.executable, "-c", "import time; time.sleep(1)"], tmp_path)
    install.wait_for([step], lambda: "3 of 7")
    assert "3 of 7" in capsys.readouterr().out


def test_where_uv_fails_pip_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def one_of_two(installer: list[str], *_: object) -> None:
        tried.append(installer[0])
        if installer == ["uv"]:
            raise install.StepFailed("Installing the build tools failed")

    def both() -> Iterator[tuple[str, list[str]]]:
        yield from (("uv", ["uv"]), ("pip", ["pip"]))

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(install, "installers", both)
    monkeypatch.setattr(install, "install", one_of_two)
    install.install_lock(tmp_path)
    assert tried == ["uv", "pip", "pip"]
    assert "trying pip instead" in capsys.readouterr().out
