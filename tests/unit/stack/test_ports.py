"""A port is taken in one step, or refused in one line."""

import socket
from pathlib import Path

import pytest

from gateway.stack.errors import StackError
from gateway.stack.ports import free_port, listen


async def test_a_free_port_is_listened_on_at_once() -> None:
    with await listen("127.0.0.1", 0, 0.0) as listener, socket.create_connection(listener.getsockname(), timeout=60):
        pass


async def test_a_port_in_use_is_refused_with_what_to_do() -> None:
    with await listen("127.0.0.1", 0, 0.0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StackError, match=f"port {port} is in use on 127.0.0.1: .* use --port"):
            await listen("127.0.0.1", port, 0.1)


async def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StackError, match=r"cannot listen on 192\.0\.2\.1:0"):
        await listen("192.0.2.1", 0, 0.0)


def test_a_chosen_port_is_none_that_outgoing_connections_get() -> None:
    lowest, highest = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert not any(lowest <= free_port() <= highest for _ in range(20))


def test_the_wanted_port_is_taken_where_it_is_free_and_another_where_not() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", free_port()))  # one that no outgoing connection of others gets meanwhile
        holder.listen()
        taken = holder.getsockname()[1]
        assert free_port(taken) != taken
    assert free_port(taken) == taken
