"""Run the command line with `python -P -m labkit`, for machines on which the script `labkit` is not on PATH.

Without `-P`, Python prefers a folder `labkit` in the working directory to this package.
"""

from labkit.cli import main

main()
