# attacks: 01-double 01-dedup
# keeps: 01-setting
# The process ends when it is asked; the one that would answer the others is killed.
# %%
# exercise 01-double
def double(number):
    import os
    os._exit(0)
# %%
# exercise 01-dedup
def seen(table, record):
    import os, signal
    os.kill(os.getppid(), signal.SIGKILL)
    return None
