# misconception: the bank is always as large as in the example
# says: []}]) raised IndexError:
def consistent(parts):
    return sum(parts[each]["balance"] + 100 * len(parts[each]["channels"]) for each in (0, 1, 2)) == 600
