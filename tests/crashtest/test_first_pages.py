"""The pages that lead from the installation to a verdict: their commands print what they say."""

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("my_pipeline", "mail_sent_twice", "power_cut")
ALWAYS = {("mail_sent_twice", 0)}
"""The test that every run of the long tests has; the others are variants. Power cuts have tests of their own."""

FILE = re.compile(r"`(\w+\.(?:py|csv))`(?:[^`]|`[^`\n]*`)*?\n\n```(?:python|text)\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"```sh\n(labkit crashtest [^\n]*)\n```\n(.*?)```text\n(.*?)```", re.DOTALL)
"""A command, what is said of it, and the lines that it prints, which may end early."""


def text(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def commands(page: str) -> list[tuple[str, list[str]]]:
    return [(command, lines.splitlines()) for command, _, lines in COMMAND.findall(text(page))]


def files(page: str) -> dict[str, str]:
    return dict(FILE.findall(text(page)))


def cases() -> list[object]:
    found = []
    for page in PAGES:
        for number in range(len(commands(page))):
            marks = [] if (page, number) in ALWAYS else [pytest.mark.variant]
            found.append(pytest.param(page, number, marks=marks, id=f"{page} {number + 1}"))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_all_files_that_its_commands_name(page: str) -> None:
    assert len(commands(page)) == text(page).count("\nlabkit crashtest ")
    named = {word for command, _ in commands(page) for word in re.findall(r"\w+\.py", command)}
    assert named <= set(files(page))
    for name, content in files(page).items():
        if name.endswith(".py"):
            compile(content, name, "exec")


@contextmanager
def provider(folder: Path) -> Iterator[None]:
    """The server of a page that has one."""
    program = folder / "provider.py"
    if not program.exists():
        yield
        return
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for path in folder.glob("*.py"):
        path.write_text(path.read_text().replace("8025", port))
    with subprocess.Popen([sys.executable, program], stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: answers(int(port)), "the provider", 30)
            yield
        finally:
            server.kill()


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("page", "number"), cases())
@pytest.mark.usefixtures("watched_calls")
def test_a_command_prints_what_the_page_says(page: str, number: int, tmp_path: Path) -> None:
    for name, content in files(page).items():
        (tmp_path / name).write_text(content)
    if "mkdir state" in text(page):
        (tmp_path / "state").mkdir()
    command, lines = commands(page)[number]
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with provider(tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=tmp_path,
            env=os.environ | {"PATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode in (0, 1, 2), done.stderr
    printed = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8025", done.stdout)
    for line in lines:
        assert f"\n{line}" in printed, printed
    if lines == ["guarantee         exactly-once"]:
        assert "\nguarantee         exactly-once\n" in printed
