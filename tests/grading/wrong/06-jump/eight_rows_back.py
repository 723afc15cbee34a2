# misconception: whoever looks at the last eight rows sees every jump
# says: answered True, but this does not hold there (hello and Hello)
def steady(seen):
    for place, (word, count) in enumerate(seen):
        if any(count < before for other, before in seen[max(0, place - 8) : place] if other == word):
            return False
    return True
