# misconception: there is always something in a log
# says: recover([]) raised IndexError:
def recover(log):
    return "wait" if log[-1] == "prepared" else log[-1]
