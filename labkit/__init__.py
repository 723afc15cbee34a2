"""labkit: step, crash and judge stream processing.

Importing the package loads nothing heavy: no pyspark, no matplotlib, no database driver.
"""

__version__ = "0.1.0"
