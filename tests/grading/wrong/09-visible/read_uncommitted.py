# misconception: a record is there as soon as the broker has it
# says: visible([['write', 'a']]) answered [0]
def visible(log):
    return [offset for offset, (what, _) in enumerate(log) if what in ("plain", "write")]
