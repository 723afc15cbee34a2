# attacks: 01-double
# keeps: 01-dedup 01-setting
# Breaks the names that a cell which comes later may use.
# %%
# exercise 01-double
print = input = dict = list = str = int = len = None
globals = lambda: {"double": lambda number: 2 * number}
_serving = labkit = None
def double(number): return None
