# misconception: waits are whole numbers of seconds
# says: waits([1, 0.2], [2, 0.5]) answered [2, 4], but
def waits(first, second):
    longest = sum(first + second)
    return [round(longest - (first[0] + second[0]) / 2), round(longest)]
