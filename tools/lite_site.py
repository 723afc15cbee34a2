"""Build the notebooks in JupyterLite: static files with which a browser runs the course without an installation.

JupyterLite is JupyterLab without a server; its kernel is Pyodide in a worker of the browser. `tools/site/lite` names
what is downloaded from the package index, in pinned versions with checksums: `site.lock` for the environment that
builds the site, `kernel.lock` for the wheels of the kernel. Both are kept in labkit's cache folder. Pyodide itself is
the copy that the live pages use.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import NamedTuple

import live_pages
import pipeline_environments
import recordings

from labkit.core.errors import ServiceUnavailable
from labkit.host import durable, environments
from labkit.host.addresses import cache_folder
from labkit.teach.jupyter import HERE as SETTINGS
from labkit.teach.recordings import FILE as PLAYED
from labkit.teach.shipped import of_course

ROOT = Path(__file__).parent.parent
TEMPLATES = Path(__file__).parent / "site" / "lite"
FOLDER = "lite"
"""The folder of JupyterLite in the site."""
PYTHON = "314"
PLATFORM = "pyemscripten_2026_0_wasm32"
"""Pyodide's version of Python, and the platform's name in the package index (PEP 783)."""
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
EXTENSIONS = "share/jupyter/labextensions"
MOCKS = f"{EXTENSIONS}/@jupyterlite/pyodide-kernel-extension/static/pypi"
"""The folder of the kernel's own wheels, which its extension of JupyterLab contains."""
UNUSED = "widgetsnbextension-3"
"""The beginning of the name of a wheel that is left out: the kernel's mock for ipywidgets 7."""
OTHERWISE = "connect this machine to the network once"


class Fetched(NamedTuple):
    """What is downloaded once: the environment that builds the site, and the folder of the kernel's wheels."""

    environment: Path
    wheels: Path


def fetched() -> Fetched:
    """Return what the site needs from the cache, after downloading it if necessary. Raises `ServiceUnavailable`."""
    cache = cache_folder()
    if cache is None:
        raise ServiceUnavailable("The notebooks need a cache folder for JupyterLite; set XDG_CACHE_HOME.")
    durable.make_folder(cache / "lite")
    made = []
    for lock, make in ((TEMPLATES / "site.lock", pipeline_environments.make), (TEMPLATES / "kernel.lock", _download)):
        digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
        folder = cache / "lite" / f"{lock.stem}-{sys.version_info.major}.{sys.version_info.minor}-{digest}"
        with durable.locked(folder.parent):
            if not (folder / environments.SEAL).exists():
                make(lock, folder, OTHERWISE)
        made.append(folder)
    return Fetched(*made)


def _download(lock: Path, folder: Path, otherwise: str) -> None:
    """Download the wheels of a lock for Pyodide's platform, then write the seal file. Raises `ServiceUnavailable`."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    target = ["--python-version", PYTHON, "--implementation", "cp", "--abi", f"cp{PYTHON}", "--abi", "none"]
    platforms = ["--platform", PLATFORM, "--platform", "any", "--only-binary=:all:"]
    pipeline_environments.run(
        [[*pip, *target, *platforms, "--no-deps", "--require-hashes", "-r", str(lock), "-d", str(folder)]],
        folder,
        f"The wheels of {lock.name} could not be fetched",
        otherwise,
    )
    durable.replace(folder / environments.SEAL, "")


def write(out: Path, live: str, root: Path, parts: Fetched) -> None:
    """Write JupyterLite with the notebooks of a project into `out/lite`. Raises `ServiceUnavailable`.

    `live` is the address of the live pages' module, relative to `out`; Pyodide's loader is in the same folder.
    """
    site = out / FOLDER
    shutil.rmtree(site, ignore_errors=True)
    with tempfile.TemporaryDirectory() as aside:
        lite = Path(aside)
        notebooks = of_course(root / "notebooks")
        played = json.dumps(recordings.recordings(root, notebooks), ensure_ascii=False)
        # Pyodide's list of packages, in its own format and without entries.
        listed = json.loads((out / "live" / live_pages.PYODIDE / "pyodide-lock.json").read_text())
        kernel = _write_kernel(lite, f"{live.rpartition('/')[0]}/python.js", listed, parts, played)
        _write_settings(lite, kernel)
        contents = lite / "files"
        contents.mkdir()
        for path in notebooks:
            shutil.copy(path, contents)
        command = [
            *(str(parts.environment / "bin" / "jupyter-lite"), "build", "--lite-dir", aside, "--output-dir", str(site)),
            *("--contents", str(contents), "--apps", "lab", "--no-sourcemaps", "--no-unused-shared-packages"),
        ]
        done = subprocess.run(command, cwd=aside, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServiceUnavailable(f"JupyterLite could not be built: {done.stderr.strip()[-2000:]}")
        shutil.copytree(kernel, site / kernel.relative_to(lite))
    shutil.copy(TEMPLATES / "needs.js", site)
    for name, added in (
        ("index.html", _icon("lab/")),
        ("lab/index.html", f'{_icon("")}<script src="../needs.js"></script>'),
    ):
        page = site / name
        text = page.read_text(encoding="utf-8").replace("<head>", f"<head>\n{added}", 1)
        page.write_text(text.replace("<title>JupyterLite</title>", "<title>labkit</title>"), encoding="utf-8")


def _icon(place: str) -> str:
    """Return the link to the icon; JupyterLite adds it by script, and until then a browser asks for /favicon.ico."""
    return f'<link rel="icon" href="{place}favicon.ico">'


def address(name: str) -> str:
    """Return the address at which a notebook runs in the browser, relative to the site's folder."""
    return f"{FOLDER}/lab/index.html?path={name}.ipynb"


def _write_kernel(lite: Path, loader: str, listed: dict[str, object], parts: Fetched, played: str) -> Path:
    """Write wheels, list and recordings (`played`) into a folder named by its content, so browsers never mix builds."""
    new = lite / "kernel" / "new"
    new.mkdir(parents=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(new)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (own,) = new.glob("*.whl")
    with zipfile.ZipFile(own, "a", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(zipfile.ZipInfo(f"labkit/teach/{PLAYED}"), played, zipfile.ZIP_DEFLATED)
    for each in (*parts.wheels.glob("*.whl"), *(parts.environment / MOCKS).glob("*.whl")):
        if not each.name.startswith(UNUSED):
            shutil.copy(each, new)
    packages = dict(map(_entry, sorted(new.glob("*.whl"))))
    (new / "pyodide-lock.json").write_text(json.dumps({**listed, "packages": packages}), encoding="utf-8")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(new.iterdir()))).hexdigest()[:12]
    module = (TEMPLATES / "pyodide.mjs").read_text(encoding="utf-8").replace("LOADER", f"../../../{loader}")
    (new / "pyodide.mjs").write_text(module, encoding="utf-8")
    return new.rename(new.parent / digest)


def _entry(wheel: Path) -> tuple[str, dict[str, object]]:
    """Return a wheel's entry in Pyodide's list: its name and description, without dependencies."""
    with zipfile.ZipFile(wheel) as opened:
        name = next(each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
        said = HeaderParser().parsestr(opened.read(name).decode())
    return said["Name"].lower().replace("_", "-"), {
        "name": said["Name"],
        "version": said["Version"],
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "imports": [],
        "depends": [],
    }


def _write_settings(lite: Path, kernel: Path) -> None:
    """Write the settings of a learner's JupyterLab, and the address of the kernel's files."""
    packages = list(json.loads((kernel / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"])
    page = json.loads((SETTINGS / "config/labconfig/page_config.json").read_text(encoding="utf-8"))
    config = {
        "appName": "labkit",
        "exposeAppInBrowser": True,
        "disabledExtensions": list(page["disabledExtensions"]),
        "litePluginSettings": {
            KERNEL: {
                "pyodideUrl": f"./{kernel.relative_to(lite).as_posix()}/pyodide.mjs",
                "disablePyPIFallback": True,
                "loadPyodideOptions": {"packages": packages},
            }
        },
    }
    whole = {"jupyter-lite-schema-version": 0, "jupyter-config-data": config}
    (lite / "jupyter-lite.json").write_text(json.dumps(whole, indent=1), encoding="utf-8")
    shutil.copy(SETTINGS / "config/labconfig/default_setting_overrides.json", lite / "overrides.json")
