"""`t=1732230000,v1=5257a8...`: the HMAC-SHA256, in hexadecimal, of the timestamp, a dot, and the raw body.

As Stripe documents its `Stripe-Signature` (https://docs.stripe.com/webhooks/signature). There may be several `v1`
while a secret is being replaced; other schemes, such as `v0`, do not count.
"""

import hmac

from gateway.errors import InvalidRequest

TOLERANCE_S = 300
MOST_HEADER_CHARS = 1024


def check_signature(header: str, body: bytes, secret: str, now_s: float) -> None:
    """Refuse a body that is not signed with the secret, or was signed too long ago. Raises InvalidRequest."""
    timestamp, given = _parts(header)
    wanted = hmac.digest(secret.encode(), b"%d.%s" % (timestamp, body), "sha256").hex()
    matches = [hmac.compare_digest(wanted, each) for each in given]
    if not any(matches) or abs(now_s - timestamp) > TOLERANCE_S:
        raise _refused()


def _parts(header: str) -> tuple[int, list[str]]:
    if len(header) > MOST_HEADER_CHARS or not header.isascii():
        raise _refused()
    pairs = [part.strip().partition("=") for part in header.split(",")]
    stamps = [value for name, _, value in pairs if name == "t"]
    if len(stamps) != 1 or not stamps[0].isdigit() or len(stamps[0]) > 12:
        raise _refused()
    return int(stamps[0]), [value for name, _, value in pairs if name == "v1"]


def _refused() -> InvalidRequest:
    """The same words for whatever is wrong: who does not know the secret learns nothing."""
    return InvalidRequest(
        "The signature does not fit the body, or its timestamp is more than five minutes off.",
        code="invalid_signature",
    )
