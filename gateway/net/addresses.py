"""Which addresses may be reached when a caller names one: public ones, and those that the operator allows.

One refusal for everything else, in the same words, so that nobody can learn what stands inside a network by asking.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

import msgspec

from gateway.errors import InvalidRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

RESOLVE_S = 5.0
MOST_HOST_CHARS = 253

_CARRIERS = tuple(
    ipaddress.ip_network(text)
    for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "fec0::/10")
)
"""IPv6 ranges that carry an IPv4 address inside (NAT64, 6to4, Teredo, compatible), or are site-local: never public."""


class UrlNotAllowed(InvalidRequest):
    """An address that may not be reached, cannot be resolved, or is none."""

    default_code = "url_not_allowed"

    def __init__(self, param: str | None = None) -> None:
        super().__init__("This URL is not allowed: it must be http or https, at a public address.", param=param)


class Allowed(msgspec.Struct, frozen=True):
    """What the operator allows beside public addresses: host names, and networks."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Allowed":
        """Read hosts and networks (CIDR), separated by commas. Raises ValueError for a network that is none."""
        hosts: set[str] = set()
        networks: list[Network] = []
        for item in filter(None, (part.strip().lower() for part in text.split(","))):
            if "/" in item or ":" in item or item.replace(".", "").isdigit():
                try:
                    networks.append(ipaddress.ip_network(item))
                except ValueError:
                    raise ValueError("fetch_allow takes hosts and networks (CIDR), separated by commas") from None
            else:
                hosts.add(item)
        return cls(frozenset(hosts), tuple(networks))

    def covers(self, host: str, address: Address) -> bool:
        """Say whether the operator allows this address of this host."""
        return host in self.hosts or any(
            address in network for network in self.networks if network.version == address.version
        )


def networks_of(text: str, setting: str) -> tuple[Network, ...]:
    """Read addresses and networks (CIDR), separated by commas. Raises ValueError that names the setting."""
    try:
        return tuple(ipaddress.ip_network(part) for part in (each.strip() for each in text.split(",")) if part)
    except ValueError:
        raise ValueError(f"{setting} takes addresses and networks (CIDR), separated by commas") from None


def is_public(address: Address) -> bool:
    """Say whether an address belongs to the public internet: no private, shared, local, mapped or multicast one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if any(address in network for network in _CARRIERS):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


async def resolve_public(host: str, port: int, allowed: Allowed) -> str:
    """Resolve a host once and give the address to connect to. Raises UrlNotAllowed unless all its addresses may be.

    Whoever connects uses this very address: a second look-up could answer another one (DNS rebinding). Forms such as
    `127.1`, `0x7f.1` and decimal ones are read as the system reads them, and judged by what they come to.
    """
    host = host.lower().rstrip(".")
    if not host or len(host) > MOST_HOST_CHARS or not host.isprintable() or "%" in host:
        raise UrlNotAllowed
    found = [_plain(ipaddress.ip_address(text)) for text in await _look_up(host, port)]
    if not found or not all(is_public(each) or allowed.covers(host, each) for each in found):
        raise UrlNotAllowed
    return str(found[0])


def _plain(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


async def _look_up(host: str, port: int) -> Sequence[str]:
    """Ask the system's resolver, for a bounded time. Raises UrlNotAllowed where it knows nothing."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_S):
            rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError, TimeoutError):
        raise UrlNotAllowed from None
    return [str(row[4][0]).partition("%")[0] for row in rows]
