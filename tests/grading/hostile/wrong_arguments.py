# attacks: 01-double 01-dedup 01-setting
# No functions, functions of other arguments, generators, awaitables and descriptors.
# %%
# exercise 01-double
async def double(number): return 2 * number
# %%
# exercise 01-dedup
def seen(table, record): yield record in table
# %%
# exercise 01-setting
setting = property(lambda self: {"interval": 5})
