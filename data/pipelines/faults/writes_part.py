"""Writes one part of the input, named by the argument, by one rename."""

import os
import sys
from pathlib import Path

STORE = Path("store")

part = Path(sys.argv[1])
hidden = STORE / f".{part.name}"
hidden.write_bytes(part.read_bytes())
os.replace(hidden, STORE / part.name)
