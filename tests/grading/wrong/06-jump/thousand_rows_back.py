# misconception: who looks back over a thousand rows sees every jump
# says: steady answered True for 2,101 rows, but the first of all words jumps back in the last row.
def steady(seen):
    for place, (word, count) in enumerate(seen):
        if any(count < before for other, before in seen[max(0, place - 1_000) : place] if other == word):
            return False
    return True
