"""A real JupyterLab for tests, with the settings that a learner has, and pages in a real browser that look at it.

`lab_server` serves a folder of its own; write notebooks into it with `write_notebook`, open one in a `lab_page`,
both with `bench.jupyter_driving`. A page fails its test when it asks another host for anything or logs
an error.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab_pages import LabPage, opened_page

from bench.jupyter_driving import write_notebook
from bench.jupyter_server import Server, serving
from labkit.host import addresses
from labkit.host.fast_start import VARIABLE, FastStart


@pytest.fixture(scope="session")
def lab_server(chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab on a folder of its own; it and its kernels are gone afterwards."""
    base = tmp_path_factory.mktemp("jupyter")
    folder = base / "notebooks"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "00_first.py").write_text("# the source\n")
    write_notebook(folder / "00_first.ipynb", ["# First", "print(1 + 1)"])
    with ExitStack() as stack:
        # Its kernels start servers of their own: those of this process's tests are not what a notebook may kill.
        with pytest.MonkeyPatch.context() as patch:
            for variable in (addresses.POSTGRES, addresses.KAFKA):
                patch.delenv(variable, raising=False)
            # Notebooks here run from top to bottom at once, so what they kept warm would be too late.
            patch.setenv(VARIABLE, str(FastStart(warm=False)))
            server = stack.enter_context(serving(folder, base / "home"))
        yield server


@pytest.fixture
def lab_page(browser) -> Iterator[LabPage]:
    """An empty page."""
    with opened_page(browser) as told:
        yield told
