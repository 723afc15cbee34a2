"""Fixtures of the tests of crash tests."""

from collections.abc import Callable
from pathlib import Path

import pytest
from plain_sinks import SINKS, Sink


@pytest.fixture
def sink(tmp_path: Path) -> Callable[..., Sink]:
    def made(text: str, name: str = "write_batch") -> Sink:
        file = SINKS / text
        if not text.endswith(".py"):
            file = tmp_path / "sink.py"
            file.write_text(text)
        return Sink(tmp_path, file.resolve(), name)

    return made
