# attacks: 01-double 01-dedup 01-setting
# Right values of the wrong type: subclasses of int, str and dict, and an int where a bool is asked for.
# %%
# exercise 01-double
class Number(int): pass
def double(number): return Number(2 * number)
# %%
# exercise 01-dedup
def seen(table, record): return int(record in table)
# %%
# exercise 01-setting
class Settings(dict): pass
setting = Settings(interval=5)
