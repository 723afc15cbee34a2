"""labkit: step, crash and judge stream processing.

Importing the package loads nothing heavy: no pyspark, no matplotlib, no database driver.
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # Python is about to run one of our programs as `python -m labkit...`, and has put the working folder first on its
    # path. That folder may be a student's, so it is removed before anything but this file is imported. A folder
    # `labkit` in it would have been imported in place of this one; only the script `labkit`, or `python -P -m labkit`,
    # is safe from that. A user's program that imports labkit keeps its folder on the path.
    _word = sys.orig_argv[-len(sys.argv)]
    if (_word.partition("m")[2] if _word.startswith("-") else _word).partition(".")[0] == "labkit":
        del sys.path[0]
    del _word

__version__ = "0.2.0"
