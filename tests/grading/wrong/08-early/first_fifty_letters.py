# misconception: no name has more than fifty letters
# says: [[0, 'streamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstrea']], {'stream
def clean(read, ends):
    stands = {name[:50]: how for name, how in ends.items()}
    return not any(name and stands[name[:50]] == "aborted" for _, name in read)
