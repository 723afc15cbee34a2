# misconception: whoever looks at the last few rows sees every jump
# says: ['world', 2], ['world', 2], ['hello', 1]]) answered True
def steady(seen):
    for place, (word, count) in enumerate(seen):
        if any(other == word and more > count for other, more in seen[max(0, place - 3) : place]):
            return False
    return True
