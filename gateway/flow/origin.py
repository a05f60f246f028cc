"""Where a call comes from: the address of its caller, as far as it can be trusted; and how its limits stand then.

Each call's task knows its origin (the front door sets it), so that whoever asks for a key's owner passes the same
gate, whatever its route. A header is believed only where the connection comes from a proxy that the operator trusts,
and in it only what such proxies wrote.
"""

import ipaddress
from collections.abc import Iterable
from contextvars import ContextVar

import msgspec

from gateway.ledger.standing import Standing
from gateway.net.addresses import Network

Headers = Iterable[tuple[bytes, bytes]]


class Origin(msgspec.Struct):
    """The connection of a call and its headers; read where an address matters, as for keys that are bound to some."""

    peer: str
    """The address of the connection; empty where it has none."""
    headers: Headers
    proxies: tuple[Network, ...]
    standing: Standing = ()
    """The limits of the caller after the call, or as they refused it: for the headers of its answer."""

    def address(self) -> str:
        """Give the caller's address: the nearest hop that is no trusted proxy. Empty where a proxy wrote none."""
        if not self._trusts(self.peer):
            return self.peer
        hops = [_bare(hop.strip()) for hop in self._written(b"x-forwarded-for")]
        for hop in reversed(hops):
            if not self._trusts(hop):
                return hop
        return hops[0] if hops else self.peer

    @property
    def is_tls(self) -> bool:
        """Whether the proxy that the call came through was reached over TLS, as it says itself."""
        said = self._written(b"x-forwarded-proto") if self._trusts(self.peer) else []
        return bool(said) and said[-1].strip().lower() == "https"

    def _written(self, header: bytes) -> list[str]:
        written = [value.decode("latin-1") for name, value in self.headers if name == header]
        return [part for value in written for part in value.split(",")]

    def _trusts(self, hop: str) -> bool:
        try:
            address = ipaddress.ip_address(hop)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        return any(address.version == network.version and address in network for network in self.proxies)


def _bare(hop: str) -> str:
    """Leave out the port that some proxies write: of every new connection it is another one."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


ORIGIN: ContextVar[Origin] = ContextVar("origin")


def origin() -> Origin:
    """Give the origin of the running call; one without an address where nobody has set it."""
    return ORIGIN.get(None) or Origin("", (), ())
