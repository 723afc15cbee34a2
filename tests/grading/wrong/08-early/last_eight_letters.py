# misconception: the last eight letters tell transactions apart
# says: [[0, 'astreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstre']], {'astrea
def clean(read, ends):
    stands = {name[-8:]: how for name, how in ends.items()}
    return not any(name and stands[name[-8:]] == "aborted" for _, name in read)
