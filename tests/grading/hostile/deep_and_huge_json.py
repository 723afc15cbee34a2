# attacks: 01-double 01-dedup 01-setting
# Answers that are nested too deeply, too large, or refer to themselves.
# %%
# exercise 01-double
def double(number):
    nested = []
    for _ in range(100_000): nested = [nested]
    return nested
# %%
# exercise 01-dedup
def seen(table, record): return "x" * 50_000_000
# %%
# exercise 01-setting
setting = {"interval": 5}
setting["self"] = setting
