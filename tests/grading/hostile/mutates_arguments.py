# attacks: 01-dedup
# keeps: 01-double 01-setting
# Changes what it is given, so that whoever asks compares with something else.
# %%
# exercise 01-dedup
def seen(table, record):
    table.clear(); table.extend([record] * 100)
    return True
