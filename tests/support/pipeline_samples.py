"""The sample pipelines in data/pipelines, each copied to a folder of its own and tested there as a user would."""

import os
import shutil
import sys
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from labkit.crashtest.blackbox.campaign import Campaign, crash_test_pipeline, pipeline_campaign
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.crashtest.report import Report

PIPELINES = Path(__file__).parents[2] / "data" / "pipelines"


def expected() -> dict[str, dict[str, Any]]:
    """What is expected of each pipeline, by the name of its file."""
    text = (PIPELINES / "expected.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def copied(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own with all of them, from now on the working folder, and this Python before others."""
    place = folder / "job"
    shutil.copytree(PIPELINES, place)
    patch.chdir(place)
    python = Path(sys.executable).parent
    patch.setenv("PATH", f"{python}{os.pathsep}{os.environ['PATH']}")
    return place


def options(name: str) -> dict[str, Any]:
    """What the test of a sample is told, as on the command line."""
    wanted = expected()[name]
    return {
        "reader": f"rows.py:{wanted['reader']}",
        "expected": f"rows.py:{wanted.get('expected', 'expected')}",
        "feed": wanted.get("feed", ""),
        "reset": wanted.get("reset", ""),
        "watch": ["input", "store", *_checkpoint(wanted)],
        "checkpoint": wanted.get("checkpoint"),
        "power_cut": wanted.get("power_cut", False),
        "pause": wanted.get("pause", 0),
        "more": wanted.get("more", ""),
        "limit": wanted.get("limit", 30),
        "seconds": 900,
        "quick": True,
    }


def _checkpoint(wanted: dict[str, Any]) -> list[str]:
    return [wanted["checkpoint"]] if "checkpoint" in wanted else []


def campaign_on(name: str) -> AbstractContextManager[Campaign]:
    """A whole test of a sample, in the working folder, of which the caller makes some runs."""
    chosen = {key: value for key, value in options(name).items() if key != "quick"}
    return pipeline_campaign(pipeline_settings(expected()[name]["command"], **chosen))


def report_on(name: str, **more: Any) -> Report:
    """The report of a sample, in the working folder."""
    return crash_test_pipeline(expected()[name]["command"], **options(name) | more)
