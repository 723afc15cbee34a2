"""What a release and a code host read: workflows, forms, citation, changelog; their commands exist in this checkout."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import release
import yaml

import labkit
from labkit.cli.app import VERBS

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": [*WORKFLOWS, ROOT / "docs" / "crashtest.yml"],
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.github-issue-forms": [GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("bug", "idea", "verdict")],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.github-actions": [GITHUB / "actions" / "crashtest" / "action.yml"],
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}
TARGET = re.compile(r"\bmake ((?:[a-z-]+ ?)+)")


def fits(schema: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def commands(workflow: Path) -> list[str]:
    """The commands of all steps of a workflow; those of a matrix too."""
    found: list[str] = []
    for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
        found += job.get("strategy", {}).get("matrix", {}).get("command", [])
        found += [step["run"] for step in job["steps"] if "run" in step]
    return found


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_the_code_host_reads_fits_its_schema(schema: str) -> None:
    done = fits(schema, *SCHEMAS[schema])
    assert done.returncode == 0, done.stdout


def test_a_schema_finds_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "tests.yml"
    wrong.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "run-on:"), encoding="utf-8")
    assert fits("vendor.github-workflows", wrong).returncode == 1


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])
def test_every_command_of_a_workflow_is_one_of_this_checkout(workflow: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = commands(workflow)
    assert found
    for command in found:
        for target in (name for names in TARGET.findall(command) for name in names.split()):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        for script in re.findall(r"(?:tools|\.ci)/[\w.]+", command):
            assert (ROOT / script).is_file(), script
        for verb in re.findall(r"\blabkit ([a-z]+)", command):
            assert verb in VERBS, verb


def test_every_python_that_the_project_claims_is_tested_on_linux_and_macos() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["fast"]["strategy"]["matrix"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = [name.rpartition(" ")[2] for name in project["classifiers"] if "Python :: 3." in name]
    assert matrix["python"] == claimed
    assert project["requires-python"] == f">={claimed[0]}"
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos"}


def test_the_changelog_has_a_section_for_this_version_and_each_has_kinds_of_changes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \((?:unreleased|\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    assert labkit.__version__ in versions
    assert versions == sorted(versions, key=lambda version: [int(part) for part in version.split(".")], reverse=True)
    kinds = {heading.partition(":")[0] for heading in re.findall(r"^### (.*)$", text, re.MULTILINE)}
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed"}


def test_a_tag_that_disagrees_with_the_project_is_not_released(tmp_path: Path) -> None:
    version = labkit.__version__
    (tmp_path / "CITATION.cff").write_text(f"version: {version}\n")
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## {version} (2027-01-31)\n\n- A line.\n\n## 0.0.1 (unreleased)\n"
    )
    assert release.disagreements(f"v{version}", tmp_path) == []
    assert release.notes(version, (tmp_path / "CHANGELOG.md").read_text()) == "- A line.\n"
    assert len(release.disagreements("v9.9.9", tmp_path)) == 3
    assert len(release.disagreements(version, tmp_path)) == 1
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {version} (unreleased)\n")
    assert len(release.disagreements(f"v{version}", tmp_path)) == 1


def test_the_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == labkit.__version__
