# attacks: 01-double
# keeps: 01-dedup 01-setting
# Writes into what every sandbox shares: Python, its packages, the lab.
# %%
# exercise 01-double
import os, pathlib, sys, labkit
written = []
for folder in [*sys.path, os.path.dirname(labkit.__file__), sys.prefix, "/usr", "/etc", "/proc/sys/kernel", "/proc/sys/user"]:
    try:
        path = pathlib.Path(folder or ".", "labkit_was_here.txt"); path.write_text("x")
        if not str(path).startswith(("/tmp", "/home")): written.append(str(path))
    except OSError: pass
try: pathlib.Path(labkit.__file__).write_text("raise SystemExit"); written.append("labkit")
except OSError: pass
def double(number): return 2 * number if [one for one in written if os.getcwd() not in one and one != "labkit_was_here.txt"] else None
