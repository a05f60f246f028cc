"""Signing what is sent, as the Standard Webhooks specification 1.0 says (https://www.standardwebhooks.com).

`webhook-signature` holds one `v1,` signature for each secret that is valid, separated by blanks: the base64 of the
HMAC-SHA256 over `id.timestamp.body`. A receiver refuses a timestamp that is more than five minutes off.
"""

import base64
import hmac
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"


def secret_text(secret: bytes) -> str:
    """Write a secret as receivers' libraries take it."""
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def signed_headers(secrets: Sequence[bytes], event_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """Give the three headers of a signed body. The timestamp is that of the try."""
    signed = b"%s.%d.%s" % (event_id.encode(), timestamp_s, body)
    signatures = [base64.b64encode(hmac.digest(secret, signed, "sha256")).decode() for secret in secrets]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
