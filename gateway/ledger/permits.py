"""What a key may call, and from where: its allow-lists, as operators write them and as gateways ask them."""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from fnmatch import translate

import msgspec

from gateway.errors import InvalidRequest
from gateway.net.addresses import Network

MOST_ENTRIES = 200
MOST_CHARS = 200

_MODEL = re.compile(rf"[^\s\x00-\x1f\x7f\[\]]{{1,{MOST_CHARS}}}")


class Permits(msgspec.Struct, frozen=True):
    """The allow-lists of a key; None is everything."""

    names: frozenset[str] | None = None
    patterns: re.Pattern[str] | None = None
    networks: tuple[Network, ...] | None = None

    def allow_model(self, names: Iterable[str]) -> bool:
        """Say whether a model may be called, by any of its names."""
        if self.names is None:
            return True
        return any(name in self.names or (self.patterns and self.patterns.fullmatch(name)) for name in names)

    def allow_address(self, address: str) -> bool:
        """Say whether calls may come from an address; from none that is known only where all may."""
        if self.networks is None:
            return True
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address):
            found = found.ipv4_mapped or found
        return any(found.version == network.version and found in network for network in self.networks)


ALL = Permits()


def permits_of(models: Sequence[str] | None, addresses: Sequence[str] | None) -> Permits:
    """Make the permits of a key from its lists as they are stored."""
    if models is None and addresses is None:
        return ALL
    names = patterns = networks = None
    if models is not None:
        names = frozenset(name for name in models if not _is_pattern(name))
        wild = [translate(name) for name in models if _is_pattern(name)]
        patterns = re.compile("|".join(wild)) if wild else None
    if addresses is not None:
        networks = tuple(ipaddress.ip_network(each) for each in addresses)
    return Permits(names, patterns, networks)


def checked_models(models: Sequence[str] | None) -> list[str] | None:
    """Read a list of models: names, and patterns in which `*` is any text. Raises InvalidRequest."""
    if models is None:
        return None
    if not 1 <= len(models) <= MOST_ENTRIES or not all(_MODEL.fullmatch(name) for name in models):
        raise InvalidRequest(
            f"models: 1 to {MOST_ENTRIES} names, or patterns such as 'team/*', or null for every model.", param="models"
        )
    return sorted(set(models))


def checked_addresses(addresses: Sequence[str] | None) -> list[str] | None:
    """Read a list of addresses and networks (CIDR), in their plain form. Raises InvalidRequest."""
    if addresses is None:
        return None
    try:
        if not 1 <= len(addresses) <= MOST_ENTRIES:
            raise ValueError
        return [str(network) for network in dict.fromkeys(ipaddress.ip_network(each.strip()) for each in addresses)]
    except ValueError:
        raise InvalidRequest(
            f"addresses: 1 to {MOST_ENTRIES} networks, such as '203.0.113.0/24' or '2001:db8::1', without bits beyond "
            "their prefix; or null for anywhere.",
            param="addresses",
        ) from None


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name
