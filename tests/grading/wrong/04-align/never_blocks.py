# misconception: barriers are counted, and reading goes on meanwhile (that is at-least-once)
# says: align(2, [0], []) answered {'read': [0, 1], 'copy': False}
def align(inputs, came, ended):
    return {"read": list(range(inputs)), "copy": len(came) + len(ended) == inputs and bool(came)}
