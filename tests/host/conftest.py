"""A folder in which a watched program works, and beside which it prints."""

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder
