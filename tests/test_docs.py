"""The documents: links and anchors resolve, commands and options exist, and pages keep to their length."""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name
from urllib.parse import unquote

import pytest
from build_sinks import ROOT
from traitlets.config import Config
from verbs import described

from labkit.cli.app import VERBS

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))
MOST_README, MOST_DESIGN = 600, 800

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]+`|^ {4}[^\n]+", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
COMMAND = re.compile(r"\blabkit ([a-z]+)\b([^\n`&;]*)")
FILE = re.compile(r"`((?:tests|tools|labkit|docs|notebooks|data|bench)/[\w./-]+)`")


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def links(page: Path) -> list[str]:
    return LINK.findall(FENCE.sub("", text_of(page)))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    found = HEADING.findall(FENCE.sub("", text_of(page)))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", unescape(heading)) for heading in found)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain)


def broken(page: Path, root: Path = ROOT) -> Iterator[str]:
    """Links of a page to a file or heading that is not there, or that lies outside of the project."""
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or not target.is_relative_to(root) or (anchor and anchor not in anchors(target)):
            yield link


def code(page: Path) -> list[str]:
    return CODE.findall(text_of(page))


def wrong_commands(page: Path) -> Iterator[str]:
    """Commands of a page that `labkit` does not have, and options that their verb does not take."""
    for verb, rest in (each for text in code(page) for each in COMMAND.findall(text)):
        if verb not in VERBS:
            yield verb
            continue
        _, _, entries = described(verb)
        known = {word.strip(",") for name, _ in entries for word in name.replace("/", " ").split()} | {"--debug"}
        yield from (f"{verb} {option}" for option in re.findall(r"(?<!\S)--[a-z-]+", rest) if option not in known)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_table_has_become_a_paragraph(page: Path) -> None:
    lines = FENCE.sub("", text_of(page)).splitlines()
    assert not [line for line in lines if re.search(r"\|\s*-{3,}\s*\|", line) and not re.fullmatch(r"\s*[-|: ]+", line)]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_and_anchor_resolves(page: Path) -> None:
    assert list(broken(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_and_option_exists(page: Path) -> None:
    if page.name != "CHANGELOG.md":  # its older entries name what is gone
        assert list(wrong_commands(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_file_of_the_project_that_a_page_names_is_there(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return
    named = {name for name in FILE.findall(text_of(page)) if not re.search(r"NN|(?<![a-z])x(?![a-z])", name)}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_checks_of_pages_find_what_is_wrong(tmp_path: Path) -> None:
    bad = tmp_path / "bad.md"
    said = "[a](gone.md) [b](#nowhere) `labkit runs` and `labkit run --gone`, [c](https://example.org)"
    bad.write_text(f"{said}\n# Here\n[d](#here)\n")
    assert list(wrong_commands(bad)) == ["runs", "run --gone"]
    assert [link for link in links(bad) if not link.startswith("https")] == ["gone.md", "#nowhere", "#here"]
    assert anchors(bad) == {"here"}
    assert list(broken(bad, tmp_path)) == ["gone.md", "#nowhere"]


def test_the_readme_fits_on_two_screens() -> None:
    assert len(text_of(ROOT / "README.md").split()) <= MOST_README


@pytest.mark.parametrize("page", DESIGN, ids=[path.stem for path in DESIGN])
def test_a_design_page_is_short_and_has_a_drawing(page: Path) -> None:
    text = text_of(page)
    assert len(text.split()) <= MOST_DESIGN
    assert "```text\n" in text or ".svg)" in text


def test_every_verb_has_its_options_on_a_page_of_the_reference() -> None:
    pages = "".join(text_of(path) for path in (ROOT / "docs").rglob("*.md"))
    assert set(re.findall(r"```\{verb\} (\w+)\n", pages)) == set(VERBS)


def test_every_public_name_exists_and_has_a_docstring() -> None:
    names = re.findall(r"^\.\. auto(?:function|class|module):: (\S+)", text_of(ROOT / "docs" / "api.md"), re.MULTILINE)
    assert len(names) > 10
    for name in names:
        module, _, attribute = name.rpartition(".")
        found = resolve_name(f"{module}:{attribute}") if attribute[0].isupper() else resolve_name(name)
        assert found.__doc__, name


def test_the_hubs_settings_are_python_and_lead_to_the_labs_own() -> None:
    """That JupyterHub knows these names was tried with version 6.1.1, which is not installed here."""
    [settings] = [
        text.removeprefix("```python\n").removesuffix("```")
        for text in code(ROOT / "docs" / "jupyterhub.md")
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


def test_a_notebook_on_the_documentation_site_leads_to_its_page_with_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sphinx", reason="install the extra dev: Sphinx is missing")
    spec = spec_from_file_location("conf", ROOT / "docs" / "conf.py")
    conf = module_from_spec(spec)
    spec.loader.exec_module(conf)
    text = (ROOT / "checked" / "01_guarantees.ipynb").read_text(encoding="utf-8")
    monkeypatch.setattr(conf, "ROOT", tmp_path)
    plain = conf.notebook_to_markdown("notebooks/01_guarantees", text)
    (tmp_path / "build" / "site").mkdir(parents=True)
    (tmp_path / "build" / "site" / "01_guarantees.html").touch()
    linked = conf.notebook_to_markdown("notebooks/01_guarantees", text)
    settings, _, body = linked.removeprefix("---\n").partition("\n---\n")
    assert "jupytext" in settings
    heading, link = body.strip().split("\n\n")[:2]
    assert heading.startswith("# ")
    assert 'href="../course/01_guarantees.html"' in link
    assert linked.replace(f"\n\n{link}", "", 1) == plain
