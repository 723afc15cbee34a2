"""Starts a process for each part, and ends with an error if one of them failed."""

import subprocess
import sys
from pathlib import Path

for part in sorted(Path("input").iterdir()):
    subprocess.run([sys.executable, "-S", "faults/writes_part.py", part], check=True)
