"""What the guides for instructors tell to type is there: commands, options, files, and the hub's settings."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from traitlets.config import Config

from labkit.cli import execute

ROOT = Path(__file__).parent.parent
GUIDES = ("instructors.md", "jupyterhub.md")
CODE = re.compile(r"```.*?```|`[^`\n]+`|^ {4}[^\n]+", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"\blabkit ([a-z]+)\b([^\n`&]*)")
FILE = re.compile(r"`((?:tests|tools|labkit|docs|notebooks|docker)/[\w./-]+)`")


def code(guide: str) -> Iterator[str]:
    yield from CODE.findall((ROOT / "docs" / guide).read_text(encoding="utf-8"))


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_and_option_is_one(guide: str, capsys) -> None:
    found = [each for text in code(guide) for each in COMMAND.findall(text)]
    assert len(found) >= 5
    for verb, rest in found:
        assert execute([verb, "--help"]) == 0, verb
        said = capsys.readouterr().out
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert option in said, (verb, option)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_file_of_the_project_that_is_named_is_there(guide: str) -> None:
    text = (ROOT / "docs" / guide).read_text(encoding="utf-8")
    for name in FILE.findall(text):
        assert "NN" in name or (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([^):]+)\)", text):
        assert (ROOT / "docs" / link.partition("#")[0]).exists(), link


def test_the_hubs_settings_are_python_and_lead_to_the_labs_own() -> None:
    """That JupyterHub knows these names was tried with version 6.1.1, which is not installed here."""
    [settings] = [
        text.removeprefix("```python\n").removesuffix("```")
        for text in code("jupyterhub.md")
        if text.startswith("```python")
    ]
    c = Config()
    exec(compile(settings, "jupyterhub_config.py", "exec"), {"c": c})
    assert {name: sorted(c[name]) for name in c} == {
        "Spawner": ["cpu_limit", "environment", "mem_limit", "notebook_dir"],
        "JupyterHub": ["load_roles", "services"],
    }
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"):
        assert Path(c.Spawner.environment[name].split(":")[0]).is_dir()
    services = {service["name"] for service in c.JupyterHub.services}
    for role in c.JupyterHub.load_roles:
        assert set(role["services"]) <= services
