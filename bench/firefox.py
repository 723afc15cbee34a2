"""Drive the system's Firefox, headless, over its own WebDriver BiDi; no driver and no patched build is needed.

Playwright drives a stock Firefox only with commands that the extended support release does not have yet.
"""

import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websocket import WebSocket, create_connection

from labkit.core.errors import ServiceUnavailable

PATIENCE = 120.0
"""The seconds that Firefox may take to start, and for each answer."""

_NAMES = ("firefox-esr", "firefox")


def find_firefox() -> Path | None:
    """Return the path of the system's Firefox; None if it is not installed."""
    paths = (shutil.which(name) for name in _NAMES)
    return next((Path(path) for path in paths if path), None)


class Tab:
    """A tab with an empty cache, which records the addresses that its page requests.

    Its methods are named as in playwright, so that functions for playwright's pages accept a tab as well.
    """

    def __init__(self, firefox: "Firefox") -> None:
        self._firefox = firefox
        self._container = firefox.ask("browser.createUserContext")["userContext"]
        self.id = firefox.ask("browsingContext.create", type="tab", userContext=self._container)["context"]
        firefox.ask("browsingContext.setViewport", context=self.id, viewport={"width": 1280, "height": 1200})
        firefox.ask("session.subscribe", events=["network.beforeRequestSent"], contexts=[self.id])
        self.asked = firefox.asked[self.id]
        """The addresses that the page has requested so far."""

    def goto(self, address: str) -> None:
        """Load a page, and return when it has loaded."""
        self._firefox.ask("browsingContext.navigate", context=self.id, url=address, wait="complete")

    def evaluate(self, function: str, *arguments: object) -> Any:
        """Call a JavaScript function with plain data and await its result. Raises `RuntimeError` with its exception."""
        call = f"(async () => JSON.stringify(await ({function})(...{json.dumps(arguments)})) ?? 'null')()"
        target = {"context": self.id}
        answer = self._firefox.ask("script.evaluate", expression=call, target=target, awaitPromise=True)
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def wait_for_function(self, function: str, timeout: float = PATIENCE * 1_000) -> None:
        """Return when a JavaScript function returns true. Raises `RuntimeError` after `timeout` milliseconds."""
        self.evaluate(
            f"""async (most) => {{
              for (const begun = performance.now(); !({function})(); await new Promise((done) => setTimeout(done, 20)))
                if (performance.now() - begun > most) throw new Error("still not: " + {json.dumps(function)});
            }}""",
            timeout,
        )

    def click(self, expression: str) -> None:
        """Click with the mouse into the middle of an element, given as an expression of JavaScript."""
        target = {"context": self.id}
        found = self._firefox.ask("script.evaluate", expression=expression, target=target, awaitPromise=False)
        element = {"type": "element", "element": {"sharedId": found["result"]["sharedId"]}}
        actions = [{"type": "pointerMove", "x": 0, "y": 0, "origin": element}]
        actions += [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self._perform({"type": "pointer", "id": "mouse", "actions": actions})

    def press(self, key: str) -> None:
        """Press and release a key, given as its WebDriver character."""
        self._perform(
            {"type": "key", "id": "keys", "actions": [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]}
        )

    def close(self) -> None:
        """Close the tab, and forget its cache."""
        self._firefox.ask("browser.removeUserContext", userContext=self._container)

    def _perform(self, actions: dict[str, Any]) -> None:
        self._firefox.ask("input.performActions", context=self.id, actions=[actions])


class Firefox:
    """A running Firefox."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.asked: defaultdict[str, list[str]] = defaultdict(list)
        """By tab, the addresses that its page has requested so far."""
        self.version = str(self.ask("session.new", capabilities={})["capabilities"]["browserVersion"])

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """Carry out a command of WebDriver BiDi and return its result. Raises `RuntimeError` if it fails."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (answer := json.loads(self._socket.recv())).get("id") != number:
            if answer.get("type") == "event":
                self.asked[answer["params"]["context"]].append(answer["params"]["request"]["url"])
        if answer["type"] == "error":
            raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
        result: dict[str, Any] = answer["result"]
        return result


@contextmanager
def firefox() -> Iterator[Firefox]:
    """Provide a Firefox with an empty profile in a `with` block. Raises `ServiceUnavailable` if it does not start."""
    program = find_firefox()
    if program is None:
        raise ServiceUnavailable("no firefox on PATH: install the system's firefox-esr package.")
    with tempfile.TemporaryDirectory(prefix="labkit-firefox-", ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", profile]
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            address = _address(process, Path(profile))
            browser = Firefox(create_connection(address, timeout=PATIENCE, suppress_origin=True))
            yield browser
            browser.ask("browser.close")
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], profile: Path) -> str:
    """Return the address at which Firefox listens, which it writes into its profile."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            written = json.loads((profile / "WebDriverBiDiServer.json").read_text(encoding="utf-8"))
            return f"ws://{written['ws_host']}:{written['ws_port']}/session"
        time.sleep(0.05)
    raise ServiceUnavailable(f"firefox ended at once, or did not start within {PATIENCE:.0f} s; start it by hand.")
