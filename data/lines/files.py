"""Plain files: a buffered write, a copy, a rename, a folder, and a write through a descriptor."""

import os
import shutil
from pathlib import Path


def write(name: str) -> None:
    with open(name, "w") as file:  # effect: made
        file.write("1")
        file.flush()  # effect: made
        os.fsync(file.fileno())  # effect: made


def publish() -> None:
    Path("folder").mkdir()  # effect: folder
    shutil.copy(  # effect: folder/copy
        "made",
        "folder/copy",
    )
    os.replace("folder/copy", "folder/published")  # effect: folder/published


descriptor = os.open("raw", os.O_CREAT | os.O_WRONLY)  # effect: raw
os.write(descriptor, b"1")  # effect: raw
write("made")
publish()
Path("text").write_text("1")  # effect: text
[Path(f"{each}.txt").touch() for each in "ab"]  # effect: *.txt
