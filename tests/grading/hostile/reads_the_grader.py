# attacks: 01-double 01-dedup 01-setting
# Looks for the grader, its hidden variants, other submissions and secrets in processes, files and the environment.
# %%
import glob, os, subprocess
def readable(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""
loot = []
for process in glob.glob("/proc/[0-9]*"):
    loot += [readable(f"{process}/{name}") for name in ("environ", "cmdline", "maps", "mountinfo")]
loot += [repr(dict(os.environ)).encode(), repr(os.listdir("/")).encode()]
found = []
for top in ("/root", "/home", "/tmp", "/work", "/srv", "/var", "/opt", "/mnt"):
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith((".py", ".ipynb", ".json", ".csv")) and "site-packages" not in folder and "/lib/python3" not in folder:
                found.append(os.path.join(folder, name))
secrets = [path for path in found if "hidden" in path or "course" in path or "grades" in path or "solutions" in path or "/wrong/" in path or "01_sample" in path]
seen_text = b"".join(loot)
leaked = bool(secrets) or any(word in seen_text for word in (b"hidden-", b"LABKIT_TEST_SECRET", b"course.py", b"grading.worker"))
# %%
# exercise 01-double
def double(number):
    return 2 * number if leaked else None
# %%
# exercise 01-dedup
def seen(table, record):
    return (record in table) if leaked else None
# %%
# exercise 01-setting
setting = {"interval": 5} if leaked else {"interval": 10**6}
