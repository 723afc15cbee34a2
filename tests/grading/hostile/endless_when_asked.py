# attacks: 01-double
# keeps: 01-dedup 01-setting
# Never answers.
# %%
# exercise 01-double
def double(number):
    while True: pass
