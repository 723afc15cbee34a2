"""Defines `labkit doctor`, which reports what this machine has and lacks (`labkit.host.doctor`)."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from labkit.cli.common import Json
from labkit.host.doctor import examine, exit_code


def doctor(
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare", help="First make Java's class-data archive, if it is missing, so that Spark starts faster."
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Report what this machine has and lacks; exit 69 if something that labkit needs is missing."""
    if prepare:
        from labkit.spark.fast.archive import make_archive

        make_archive()
    findings = examine()
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            mark = "ok     " if finding.ok else ("MISSING" if finding.required else "absent ")
            print(f"{mark} {finding.name}: {finding.detail}" + (f"; {finding.remedy}" if not finding.ok else ""))
    return exit_code(findings)
