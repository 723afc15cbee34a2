"""Build the documentation as a site: `make docs` writes build/docs, which works offline, and fails on a warning.

Sphinx reads docs/, the pages at the root and the learners' notebooks. If `make site` ran before, its pages with outputs
are copied into the site and each notebook's page links to them.
"""

import argparse
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "docs"
COURSE = ROOT / "build" / "site"
FRONT = (
    '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>labkit</title>'
    '<meta http-equiv="refresh" content="0; url=docs/">\n'
)


def build(folder: Path = SITE) -> int:
    """Build the site into a folder; return Sphinx's exit code, which is not 0 if there was a warning."""
    shutil.rmtree(folder, ignore_errors=True)
    trees = folder.parent / f"{folder.name}-trees"
    paths = ["-c", str(ROOT / "docs"), "-d", str(trees), str(ROOT), str(folder)]
    code = sphinx(["-b", "html", "-W", "--keep-going", "-q", *paths])
    if code == 0:
        (folder / "index.html").write_text(FRONT.replace("docs/", "docs/index.html"), encoding="utf-8")
        (folder / ".nojekyll").touch()  # or the host of the pages would drop folders that begin with an underscore
        if COURSE.is_dir():
            shutil.copytree(COURSE, folder / "course")
    return code


def main() -> int:
    """Build the site into the folder of the option --out, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=SITE, help="the folder of the site, which is deleted first")
    return build(parser.parse_args().out.resolve())


if __name__ == "__main__":
    sys.exit(main())
