"""A port for a server is one that no connection of a neighbour can have been given meanwhile."""

import socket
from contextlib import ExitStack

from labkit.host.servers import ports


def test_ports_lie_below_those_that_the_kernel_gives_to_connections() -> None:
    chosen = [ports.free_port() for _ in range(200)]
    assert max(chosen) < ports.lowest_connection_port()
    assert min(chosen) >= ports.LOWEST


def test_a_connection_is_given_a_port_of_the_range_that_was_read() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            assert client.getsockname()[1] >= ports.lowest_connection_port()


def test_ports_that_are_held_together_differ() -> None:
    with ExitStack() as held:
        chosen = [ports.hold(held) for _ in range(200)]
    assert len(set(chosen)) == 200


def test_the_port_of_last_time_is_kept_and_left_when_somebody_else_listens_there() -> None:
    last = ports.free_port()
    with ExitStack() as held:
        assert ports.hold(held, last) == last
    with socket.create_server((ports.HOST, last)), ExitStack() as held:
        assert ports.hold(held, last) != last


def test_where_the_kernels_range_leaves_no_room_any_free_port_will_do(monkeypatch) -> None:
    monkeypatch.setattr(ports, "lowest_connection_port", lambda: 1024)
    assert ports.free_port() >= 1024
