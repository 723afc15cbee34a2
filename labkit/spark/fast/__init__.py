"""Options that only save time: forked Python processes, class-data archives, a warm standby. Everything works
without them.
"""
