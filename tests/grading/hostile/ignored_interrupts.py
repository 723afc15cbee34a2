# slow: it takes seconds
# attacks: 01-double
# keeps: 01-dedup 01-setting
# Ignores every signal that it can, and every exception.
# %%
# exercise 01-double
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True:
    try:
        while True: pass
    except BaseException: pass
