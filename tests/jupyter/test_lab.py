"""JupyterLab as it opens: the first notebook, a short file list, one kernel, nothing that pops up."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest
from waiting import until

from bench.jupyter_driving import open_notebook, write_notebook
from bench.jupyter_server import Server, serving
from labkit.core.errors import InvalidInput
from labkit.teach import jupyter

ROOT = Path(__file__).parents[2]


def asked(server: Server, path: str) -> dict:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/{path}?token={server.token}", timeout=10) as answer:
        return json.loads(answer.read())


def one_notebook(place: Path) -> Path:
    folder = place / "notebooks"
    folder.mkdir()
    write_notebook(folder / "1.ipynb", [])
    return folder


@pytest.mark.browser
def test_it_opens_on_the_first_notebook_and_is_quiet(lab_server, lab_page):
    page = lab_page.page
    open_notebook(page, lab_server, "00_first.ipynb")
    page.wait_for_selector(".jp-DirListing-item")
    listed = page.locator(".jp-DirListing-itemName").all_inner_texts()
    assert listed[0] == "00_first.ipynb"
    assert all(name.endswith(".ipynb") for name in listed)
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0
    assert page.locator("[data-id='extensionmanager.main-view']").count() == 0
    assert page.locator(".jp-Toolbar-kernelName").inner_text() == "Python 3 (labkit)"
    lab_page.keep("lab-opens")


def test_what_the_server_says_of_itself(lab_server):
    kernels = asked(lab_server, "api/kernelspecs")["kernelspecs"]
    assert {name: each["spec"]["display_name"] for name, each in kernels.items()} == {"python3": "Python 3 (labkit)"}
    settings = {each["id"]: each for each in asked(lab_server, "lab/api/settings")["settings"]}

    def default(plugin, name):
        return settings[plugin]["schema"]["properties"][name]["default"]

    assert default("@jupyterlab/docmanager-extension:plugin", "autosave") is True
    assert default("@jupyterlab/apputils-extension:notification", "fetchNews") == "false"
    assert default("@jupyterlab/apputils-extension:notification", "checkForUpdates") is False
    assert default("@jupyter-widgets/jupyterlab-manager:plugin", "saveState") is True


@pytest.mark.slow
def test_the_wheel_carries_the_settings(tmp_path):
    """Out of the wheel, and not out of the checkout, a JupyterLab starts with them."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(build, cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = (
        "import labkit.teach.jupyter as j, sys; from pathlib import Path;"
        "print(j.HERE); print(*j.environment({}).values(), sep='\\n')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        check=True,
        capture_output=True,
        text=True,
    )
    here, config, data = map(Path, told.stdout.splitlines())
    assert here.is_relative_to(tmp_path / "installed")
    folder = one_notebook(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jupyter, "SEARCHED", {"JUPYTER_CONFIG_PATH": config, "JUPYTER_PATH": data})
        with serving(folder, tmp_path / "home") as server:
            test_what_the_server_says_of_itself(server)


def test_a_port_that_is_taken_and_a_folder_without_notebooks_get_a_sentence(tmp_path, monkeypatch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(InvalidInput, match=rf"--port {port}: address already in use; stop the program"):
            jupyter.check_port(port)
    with pytest.raises(InvalidInput, match=r"there is no notebook in this folder; .*00_start"):
        jupyter.notebook_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert jupyter.notebook_folder() == ROOT / "notebooks"
    monkeypatch.setattr(jupyter, "CHECKOUT", tmp_path)
    with pytest.raises(InvalidInput, match="there is no folder with notebooks here"):
        jupyter.notebook_folder()


def test_nothing_is_left_when_the_server_ends(tmp_path):
    folder = one_notebook(tmp_path)
    with serving(folder, tmp_path / "home") as server:
        assert asked(server, "api/status")["kernels"] == 0
    with socket.socket() as knocking:
        assert knocking.connect_ex(("127.0.0.1", server.port)) != 0
    assert [path.name for path in folder.iterdir()] == ["1.ipynb"]


@pytest.mark.slow
def test_nothing_is_left_of_a_server_whose_asker_was_killed(tmp_path):
    folder = one_notebook(tmp_path)
    code = (
        "import sys; from pathlib import Path; from bench.jupyter_server import serving\n"
        "with serving(Path(sys.argv[1]), Path(sys.argv[2])) as server:\n"
        "    print(server.port, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, folder, tmp_path / "home"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as asker:
        port = int(asker.stdout.readline())
        asker.kill()

    def gone() -> bool:
        with socket.socket() as knocking:
            return knocking.connect_ex(("127.0.0.1", port)) != 0

    until(gone, "nobody listens any more")
