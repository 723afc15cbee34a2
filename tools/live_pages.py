"""Build the simulators as live pages, whose players answer a reader's choices.

A page is static files. At a reader's first choice a worker loads Pyodide, which is CPython in WebAssembly, and the part
of labkit that needs the standard library alone. Pyodide comes from the npm registry in one pinned version with its
checksum, is kept in labkit's cache folder, and is copied beside the pages, so that they ask no other host for anything.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from html import escape
from io import BytesIO
from pathlib import Path

from labkit.core.errors import ServiceUnavailable
from labkit.host.addresses import cache_folder
from labkit.sim.models import MODELS
from labkit.sim.rules import Event, RuleModel
from labkit.view.assets import asset
from labkit.view.narration import Story
from labkit.view.presenter import choices
from labkit.view.stepper import Player
from labkit.view.updates import parts_of

ROOT = Path(__file__).parent.parent
TEMPLATES = Path(__file__).parent / "site"
# To use another version, set both constants, and run tests/test_live_site.py.
VERSION = "314.0.7"
SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
PYODIDE = f"pyodide-{VERSION}"
PATIENCE = 300.0
"""The most seconds for the download of 6.5 MB."""

PACKED = ("core", "sim", "view")
"""The packages of labkit that a page needs: `labkit.view.worker` and whatever it imports."""


def pyodide() -> Path:
    """Return the path of Pyodide's archive in the cache; download it if missing. Raises `ServiceUnavailable`."""
    cache = cache_folder()
    if cache is None:
        raise ServiceUnavailable("Live pages need a cache folder for Pyodide, but none is known; set XDG_CACHE_HOME.")
    archive = cache / f"{PYODIDE}.tgz"
    if not archive.is_file():
        _fetch(archive)
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        raise ServiceUnavailable(f"{archive} is not Pyodide {VERSION}: its checksum differs; delete it and try again.")
    return archive


def _fetch(archive: Path) -> None:
    by_hand = f"or put the file that `npm pack pyodide@{VERSION}` writes there yourself: {archive}"
    npm = shutil.which("npm")
    if npm is None:
        raise ServiceUnavailable(
            f"Live pages need Pyodide {VERSION}, and npm, which fetches it, is missing: install it, {by_hand}"
        )
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as aside:
        command = [npm, "pack", "--silent", f"pyodide@{VERSION}", "--pack-destination", aside]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE, cwd=aside)
        except (subprocess.SubprocessError, OSError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            raise ServiceUnavailable(
                f"Live pages need Pyodide {VERSION}, which could not be fetched from the npm registry "
                f"({said[-1] if said else 'no reason given'}): connect to a network once, {by_hand}"
            ) from None
        (Path(aside) / archive.name).replace(archive)


def packed() -> bytes:
    """Return the part of labkit that a page needs as a ZIP archive, which is the same in every build."""
    package = ROOT / "labkit"
    files = [package / "__init__.py"]
    needed = (".py", ".toml", ".css")
    files += [path for room in PACKED for path in (package / room).rglob("*") if path.suffix in needed]
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(files):
            archive.writestr(
                zipfile.ZipInfo(path.relative_to(ROOT).as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED
            )
    return whole.getvalue()


def write_assets(out: Path, archive: Path) -> str:
    """Write live pages' files into a folder named by its content; return their module's address, relative to `out`."""
    templates = TEMPLATES / "live"
    own = {
        "live.js": (templates / "live.js").read_bytes(),
        "worker.js": (templates / "worker.js").read_bytes(),
        "python.js": (templates / "python.js").read_bytes().replace(b"PYODIDE/", f"{PYODIDE}/".encode()),
        "stepper.js": asset("stepper.js").encode(),
        "labkit.zip": packed(),
        "models.json": json.dumps({name: choices(name) for name in MODELS}, ensure_ascii=False).encode(),
    }
    digest = hashlib.sha256(b"".join(own.values())).hexdigest()[:12]
    folder = out / "live" / digest
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in own.items():
        (folder / name).write_bytes(content)
    _unpack(archive, out / "live" / PYODIDE)
    return f"live/{digest}/live.js"


def remove_unused(out: Path) -> None:
    """Remove the folders of earlier builds below `out/live` that no page names any more."""
    pages = [*out.glob("*.html"), *out.glob("simulators/*.html"), *out.glob("lite/kernel/*/*.mjs")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    for folder in (out / "live").glob("*"):
        if folder.name != PYODIDE and not any(f"live/{folder.name}/" in text for text in texts):
            shutil.rmtree(folder)


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with tarfile.open(archive) as files:

        def content(name: str) -> bytes:
            part = files.extractfile(f"package/{name}")
            assert part is not None
            return part.read()

        for name in ("pyodide.mjs", "pyodide.asm.mjs", "python_stdlib.zip"):
            (folder / name).write_bytes(content(name))
        (folder / "pyodide.asm.wasm.deflated").write_bytes(gzip.compress(content("pyodide.asm.wasm"), 9, mtime=0))
        # Pyodide's list of packages is emptied, because none is needed.
        lock = json.loads(content("pyodide-lock.json"))
        (folder / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}), encoding="utf-8")


def write_pages(out: Path, live: str) -> None:
    """Write a page for each simulator, and their index. Without the address `live` their players only step."""
    folder = out / "simulators"
    folder.mkdir(parents=True)
    template = (TEMPLATES / "simulator.html").read_text(encoding="utf-8")
    entries = []
    for name, blueprint in MODELS.items():
        title = escape(name.replace("_", " "))
        first, scenario = next(iter(blueprint.scenarios.items()))
        player = Player(blueprint.trace_of(first), scenario.watch_for)
        parts = {
            "title": title,
            "name": name,
            "sentence": escape(blueprint.sentence),
            "can": can(player.story),
            "scenarios": _scenarios(name, "#"),
            "first": f"{name}.{first}",
            "live": f'<script type="module" src="../{live}"></script>' if live else "",
            "player": player.html(),
        }
        (folder / f"{name}.html").write_text(_filled(template, parts), encoding="utf-8")
        entries.append(
            f'<li><h2><a href="{name}.html">{title}</a></h2><p>{parts["sentence"]}</p>'
            f"<details><summary>{len(blueprint.scenarios)} runs to begin with</summary>"
            f"<ul>{_scenarios(name, f'{name}.html#')}</ul></details></li>"
        )
    index = (TEMPLATES / "simulators.html").read_text(encoding="utf-8")
    (folder / "index.html").write_text(_filled(index, {"entries": "".join(entries)}), encoding="utf-8")
    shutil.copy(TEMPLATES / "simulators.css", folder)


_FAULTS = {
    Event.CRASH: "crashes",
    Event.DROP: "losses",
    Event.DUPLICATE: "duplicates",
    Event.DELAY: "delays",
    Event.REORDER: "overtaking messages",
    Event.TIMEOUT: "timeouts",
    Event.OPERATOR: "interference by people",
}


def can(story: Story) -> str:
    """Return a sentence on the faults that a click in a run's picture causes, and those that the simulator adds."""
    model = story.model
    assert isinstance(model, RuleModel)
    acts = [(action, step) for step, actions in enumerate(story.enabled) for action in actions]
    channels = {channel.id for scene in story.scenes for channel in scene.channels}
    now = {model.event(action) for action, _ in acts}
    hit = {model.event(action) for action, step in acts if channels & {*parts_of(story, step, action)}}
    ways = ["a process to crash it"] * (Event.CRASH in now)
    verbs = [verb for event, verb in ((Event.DROP, "lose"), (Event.DUPLICATE, "double")) if event in hit]
    if verbs:
        ways.append(f"a message to {' or '.join(verbs)} it")
    known = {rule.event for rule in model.rules.values()}
    more = [word for event, word in _FAULTS.items() if event in known - now]
    said = f"Choose each next step, or let things fail: click {', '.join(ways)}." if ways else "Choose each next step."
    return said + (f" Parameters and the runs below add {', '.join(more)}." if more else "")


def _scenarios(model: str, before: str) -> str:
    return "".join(
        f'<li><a href="{before}{model}.{name}">{escape(name.replace("_", " "))}</a>: {escape(scenario.watch_for)}</li>'
        for name, scenario in MODELS[model].scenarios.items()
    )


def _filled(template: str, parts: dict[str, str]) -> str:
    for name, text in parts.items():
        template = template.replace(f"{{{name}}}", text)
    return template
