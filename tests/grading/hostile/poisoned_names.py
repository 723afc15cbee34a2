# attacks: 01-double
# keeps: 01-dedup 01-setting
# Modules and packages of its own beside the notebook, which whoever imports there would run.
# %%
# exercise 01-double
import pathlib
for name in ("json", "select", "labkit", "msgspec", "sitecustomize", "usercustomize"):
    pathlib.Path(f"{name}.py").write_text("import os; os.system('touch /tmp/labkit-was-here')")
def double(number): return None
