"""Step 1: whose key it is."""

import msgspec

from gateway.errors import Forbidden, Unauthorized
from gateway.flow.call import Call
from gateway.flow.origin import origin
from gateway.ledger.keyring import Caller, Keyring


class Authentic(msgspec.Struct, frozen=True):
    """A call whose key is known and live."""

    call: Call
    caller: Caller


async def authenticate(keyring: Keyring, call: Call) -> Authentic:
    """Find the key's owner. Unknown, revoked, expired and wrong keys raise the same Unauthorized."""
    if call.key_id is None:
        return Authentic(call, await identify(keyring, call.secret))
    chosen = keyring.find_key(call.key_id)
    if chosen is None:
        raise Unauthorized("This key is not known, or not live any more.")
    return Authentic(call, let_in(chosen))


async def identify(keyring: Keyring, secret: str) -> Caller:
    """Find the owner of a secret. Raises Unauthorized, and Forbidden for a call from where the key may not be used."""
    caller = keyring.find(secret) or await keyring.look_up(secret)
    if caller is None:
        raise Unauthorized("No valid API key was given. Send it as 'Authorization: Bearer KEY'.")
    return let_in(caller)


def let_in(caller: Caller) -> Caller:
    """Let a caller in who calls from where their key may be used. Raises Forbidden."""
    if caller.permits.networks is not None and not caller.permits.allow_address(origin().address()):
        raise Forbidden("This key may not be used from your address.", code="address_not_allowed")
    return caller
