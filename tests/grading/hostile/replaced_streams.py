# attacks:
# keeps: 01-double 01-dedup 01-setting
# Standard streams that nobody can write to, as somebody leaves them behind who wanted to catch what is printed.
# %%
import io, sys
sys.stdout = io.StringIO()
sys.stderr = None
# %%
sys.stdout.close()
