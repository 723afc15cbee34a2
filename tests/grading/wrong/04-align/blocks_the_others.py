# misconception: the input whose barrier came goes on, the others must wait for it
# says: align(2, [0], []) answered {'read': [0], 'copy': False}
def align(inputs, came, ended):
    return {"read": came or list(range(inputs)), "copy": bool(came) and len(came) + len(ended) == inputs}
