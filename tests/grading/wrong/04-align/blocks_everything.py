# misconception: while one waits for barriers, nothing may be read
# says: False}; align(2, [1], []) answered {'read':
def align(inputs, came, ended):
    return {"read": [] if came else list(range(inputs)), "copy": len(came) == inputs}
