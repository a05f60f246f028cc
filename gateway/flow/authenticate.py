"""Step 1: whose key it is."""

import msgspec

from gateway.errors import Unauthorized
from gateway.flow.call import Call
from gateway.ledger.keyring import Caller, Keyring


class Authentic(msgspec.Struct, frozen=True):
    """A call whose key is known and live."""

    call: Call
    caller: Caller


async def authenticate(keyring: Keyring, call: Call) -> Authentic:
    """Find the key's owner. Unknown, revoked, expired and wrong keys raise the same Unauthorized."""
    return Authentic(call, await identify(keyring, call.secret))


async def identify(keyring: Keyring, secret: str) -> Caller:
    """Find the owner of a secret. Raises Unauthorized."""
    caller = keyring.find(secret) or await keyring.look_up(secret)
    if caller is None:
        raise Unauthorized("No valid API key was given. Send it as 'Authorization: Bearer KEY'.")
    return caller
