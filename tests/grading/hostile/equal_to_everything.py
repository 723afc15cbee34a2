# attacks: 01-double 01-dedup 01-setting
# An object that compares equal to everything.
# %%
class Everything(dict):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __le__(self, other): return True
    def __mul__(self, other): return self
    def __getitem__(self, name): return self
    def get(self, *_): return self
    __hash__ = dict.__hash__
# %%
# exercise 01-double
def double(number): return Everything()
# %%
# exercise 01-dedup
def seen(table, record): return Everything()
# %%
# exercise 01-setting
setting = Everything()
