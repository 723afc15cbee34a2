"""`python -P -m labkit`: the command line where the script `labkit` is not on PATH. It must not do anything else.

Without `-P`, Python prefers a folder `labkit` in the working folder to this package.
"""

from labkit.cli import main

main()
