# misconception: if one interval divides the other, the jobs commit together and a record waits once
# says: answered [1.7, 2.7], but
def waits(first, second):
    commits, slow, fast = first[1] + second[1], max(first[0], second[0]), min(first[0], second[0])
    if slow % fast:
        return [(slow + fast) / 2 + commits, slow + fast + commits]
    return [slow / 2 + commits, slow + commits]
