"""`python -m labkit`: the command line where the script `labkit` is not on PATH. It must not do anything else."""

from labkit.cli import main

main()
