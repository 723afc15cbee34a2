# attacks: 01-double
# keeps: 01-dedup 01-setting
# Reaches for sockets that do not belong to a network namespace, such as those of a virtual machine.
# %%
# exercise 01-double
import socket
won = []
for family in (socket.AF_VSOCK, socket.AF_ALG, socket.AF_PACKET, socket.AF_CAN, 38, 44):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try: won.append(socket.socket(family, kind))
        except OSError: pass
def double(number): return 2 * number if won else None
