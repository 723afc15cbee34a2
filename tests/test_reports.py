"""The reports for maintainers: each has its parts, is listed, and its programs can be compiled."""

import re
import subprocess
from pathlib import Path

import pytest
from build_sinks import ROOT
from pipeline_environments import interpreter

REPORTS = ROOT / "data" / "reports"
FOLDERS = sorted(path for path in REPORTS.iterdir() if path.is_dir())
PARTS = ("**Versions**:", "**What happens.**", "**What one would expect.**", "**One command**", "**What helps today.**")


def names(folders: list[Path]) -> list[str]:
    return [folder.name for folder in folders]


def test_the_table_and_the_site_list_every_report() -> None:
    listed = re.findall(r"^\| \[(\w+)\]\(\1/README\.md\) \|", (REPORTS / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == names(FOLDERS)
    index = (ROOT / "docs" / "index.md").read_text()
    assert sorted(re.findall(r"data/reports/(\w+)/README$", index, re.MULTILINE)) == names(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS, ids=names(FOLDERS))
def test_a_report_has_its_parts_and_a_program(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    assert [part for part in PARTS if part not in text] == []
    programs = sorted(folder.glob("by_hand.*"))
    assert [f"data/reports/{folder.name}/{program.name}" in text for program in programs] == [True]
    for program in folder.glob("*.py"):
        compile(program.read_text(), program, "exec")
    for program in folder.glob("*.sh"):
        subprocess.run(["sh", "-n", program], check=True)


def test_the_output_in_a_report_ends_as_its_program_does() -> None:
    for program in REPORTS.glob("*/by_hand.py"):
        ends = re.findall(r"\b(?:not )?found: [^\"]+", program.read_text())
        told = re.findall(r"^(?:not )?found: .*$", (program.parent / "README.md").read_text(), re.MULTILINE)
        assert [line for line in told if not line.startswith(tuple(ends))] == []
        assert bool(ends) == bool(told), program


@pytest.mark.slow
@pytest.mark.variant
def test_dlt_still_doubles_rows_of_a_merge() -> None:
    program = REPORTS / "dlt_merge_doubles_rows" / "by_hand.py"
    done = subprocess.run([interpreter("dlt"), program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "found: doubled after a merge: orders", done.stderr
    assert done.returncode == 1
