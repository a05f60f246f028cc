"""What a request costs that did not succeed."""

from typing import Literal

import msgspec

ChargeWhen = Literal["nothing", "produced", "full"]
"""What an outcome costs: nothing; the units produced (and a price per request once the forward phase began); all."""


class OutcomePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What each outcome of a model costs, but success, which costs what was measured."""

    failed: ChargeWhen = "nothing"
    cancelled: ChargeWhen = "produced"
    expired: ChargeWhen = "produced"
