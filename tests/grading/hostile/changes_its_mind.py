# attacks: 01-double 01-dedup
# keeps: 01-setting
# Keeps something between questions, and answers by what was asked before.
# %%
# exercise 01-double
asked = 0
def double(number):
    global asked
    asked += 1
    return 2 * number if asked < 12 else 0
# %%
# exercise 01-dedup
known = set()
def seen(table, record):
    answer = record in known
    known.add(record)
    return answer
