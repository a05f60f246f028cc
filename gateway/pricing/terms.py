"""What the charge of a request depends on beside its units and its price version, pinned at admission."""

import msgspec

from gateway.pricing.conditions import Trait, Traits

__all__ = ["NO_TERMS", "WHOLE_PPM", "Terms", "Trait", "read_terms", "terms_json"]

WHOLE_PPM = 1_000_000


class Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """The traits of a request that conditions of prices look at, and the discount of its account."""

    traits: dict[str, Trait] = {}
    discount_ppm: int = 0
    """Millionths off everything."""
    others: dict[int, dict[str, Trait]] = {}
    """The traits at the price versions of other models that it may run on, where they differ."""

    def traits_at(self, price: int) -> Traits:
        """Give the traits that count at a price version."""
        return self.others.get(price, self.traits) if self.others else self.traits


NO_TERMS = Terms()

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Terms)


def terms_json(terms: Terms) -> str | None:
    """Write terms as they lie in Postgres; None where there is nothing to write."""
    return None if terms == NO_TERMS else _ENCODER.encode(terms).decode()


def read_terms(text: str | None) -> Terms:
    """Read terms from Postgres. Raises ValueError."""
    return _DECODER.decode(text) if text else NO_TERMS
