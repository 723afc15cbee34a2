# misconception: who looks back over a hundred rows sees every jump
# says: (far apart
def steady(seen):
    for at, (word, count) in enumerate(seen):
        if any(w == word and c > count for w, c in seen[max(0, at - 100) : at]):
            return False
    return True
