"""The runs of a module, and a driver of the test's own in place of the real one, for tests of what is around it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conducted import Outcomes, conducted

from labkit.host.processes import wire
from labkit.host.processes.protocol import Launch


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What comes of the runs of the module, its `RUNS`, which are made once for all its tests."""
    return conducted(request.module.RUNS, tmp_path_factory.mktemp("runs"))


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(
        module="labkit.runs.driver",
        scratch=str(tmp_path / "scratch" / "driver-1"),
        log=str(tmp_path / "driver.log"),
        task=wire.raw({}),
    )


@pytest.fixture
def with_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Puts a module `labkit.runs.driver` with this source in front of the real one, for child processes."""

    def put(source: str) -> None:
        (tmp_path / "sitecustomize.py").write_text(
            "import sys\n"
            "if '-m' in sys.orig_argv and 'labkit.runs.driver' in sys.orig_argv:\n"
            f"    exec({source!r})\n"
            "    import os; os._exit(0)\n"
        )
        path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))

    return put
