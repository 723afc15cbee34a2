# attacks: 01-double 01-dedup 01-setting
# NaN, infinity, and numbers that are not exact.
# %%
# exercise 01-double
def double(number): return float(2 * number)
# %%
# exercise 01-dedup
def seen(table, record): return float("nan")
# %%
# exercise 01-setting
setting = {"interval": float("-inf")}
