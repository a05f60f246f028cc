"""All live keys in the memory of a gateway: the look-up of the hot path, without a round trip.

The snapshot follows `revision.keys`: one small statement every `every_s`, answered with the changed keys
only, so a revoked key stops within that time. A key that the snapshot does not know is either wrong or
new, made a moment ago through another gateway: `look_up` refreshes once and looks again. Refreshes are
shared and spaced, so a flood of wrong keys costs Postgres no more than `LOOK_UPS_PER_S`.
"""

import asyncio
import time
from hashlib import sha256
from importlib.resources import files

import asyncpg
import msgspec
import structlog

from gateway.db.session import HotSession
from gateway.errors import Unavailable
from gateway.ledger.keys import MAX_LIVE_KEYS
from gateway.ledger.permits import ALL, Permits, permits_of
from gateway.ledger.sessions import Sessions

log = structlog.get_logger()

LOOK_UPS_PER_S = 20
MAX_HELD_KEYS = MAX_LIVE_KEYS + 10_000
"""Above this many, expired keys are dropped from memory; live ones cannot be more than MAX_LIVE_KEYS."""

_CHANGED = (files("gateway.ledger") / "sql" / "keyring.sql").read_text("utf-8")
_FOR_EVER = float("inf")


class Caller(msgspec.Struct, frozen=True):
    """Who calls: a live key and its account."""

    key_id: int
    account_id: int
    key_name: str
    account_name: str
    expires_at_s: float = _FOR_EVER
    """Unix seconds."""
    price_list_id: int | None = None
    """Whose prices its account pays; None is the list price."""
    discount_ppm: int = 0
    """Millionths off every charge of its account."""
    permits: Permits = ALL
    """Which models it may call, and from where."""
    limited: bool = False
    """Whether it or its account has limits."""


class Keyring:
    """The live keys by the hash of the whole key. Serves the last snapshot while Postgres is away.

    A token of `sessions` is as good as the key that it stands for.
    """

    def __init__(self, session: HotSession, *, every_s: float, sessions: Sessions | None = None) -> None:
        self._session = session
        self._sessions = sessions
        self._hashes: dict[int, bytes] = {}
        self._every_s = every_s
        self._callers: dict[bytes, Caller] = {}
        self._turn = asyncio.Lock()
        self._began_at = 0.0
        self._away_at = 0.0
        self.revision = -1
        self.refreshed_at = 0.0
        """When the snapshot was last known to be current, on the monotonic clock; 0 before the first reading."""

    def __len__(self) -> int:
        """Count the keys held."""
        return len(self._callers)

    def find(self, secret: str) -> Caller | None:
        """Find the caller of a whole key. Unknown, revoked, expired and wrong keys all give None."""
        caller = self._callers.get(sha256(secret.encode("utf-8", "surrogatepass")).digest())
        if caller is None and self._sessions is not None and secret.startswith("ey"):
            caller = self._of_key(self._sessions.key_of(secret, "access"))
        if caller is None or caller.expires_at_s <= time.time():
            return None
        return caller

    def find_key(self, key_id: int | None) -> Caller | None:
        """Find the caller of a key by its id: for tokens that were checked."""
        caller = self._of_key(key_id)
        return caller if caller is not None and caller.expires_at_s > time.time() else None

    def _of_key(self, key_id: int | None) -> Caller | None:
        hashed = None if key_id is None else self._hashes.get(key_id)
        return None if hashed is None else self._callers.get(hashed)

    async def look_up(self, secret: str) -> Caller | None:
        """Find the caller of a key that `find` did not know, after a refresh that all such calls share.

        Raises Unavailable while Postgres is away: then nobody can tell a new key from a wrong one.
        """
        asked_at = time.monotonic()
        if asked_at < self._away_at + self._every_s:
            raise _away()
        async with self._turn:
            if self._began_at < asked_at:
                await asyncio.sleep(self._began_at + 1 / LOOK_UPS_PER_S - time.monotonic())
                await self._refresh()
            elif asked_at < self._away_at:
                raise _away()
        return self.find(secret)

    async def refresh(self) -> None:
        """Read what has changed. Raises Unavailable while Postgres is away."""
        async with self._turn:
            await self._refresh()

    async def run(self, stopping: asyncio.Event) -> None:
        """Follow the revision until told to stop; an outage is waited out."""
        away = False
        while not stopping.is_set():
            try:
                await self.refresh()
                away = False
            except Unavailable:
                if not away:
                    log.warning("keyring.stale", keys=len(self), revision=self.revision)
                away = True
            try:
                await asyncio.wait_for(stopping.wait(), self._every_s)
            except TimeoutError:
                continue

    def _apply(self, row: asyncpg.Record) -> None:
        if not row["live"]:
            gone = self._callers.pop(row["hash"], None)
            if gone is not None:
                self._hashes.pop(gone.key_id, None)
            return
        expires_at = row["expires_at"]
        if self._sessions is not None:
            self._hashes[row["id"]] = row["hash"]
        self._callers[row["hash"]] = Caller(
            row["id"],
            row["account_id"],
            row["name"],
            row["account_name"],
            expires_at.timestamp() if expires_at else _FOR_EVER,
            row["price_list_id"],
            row["discount_ppm"],
            permits_of(row["models"], row["addresses"]),
            row["limited"],
        )

    async def _refresh(self) -> None:
        self._began_at = time.monotonic()
        try:
            rows = await self._session.fetch(_CHANGED, self.revision)
        except Unavailable:
            self._away_at = time.monotonic()
            raise
        for row in rows:
            if row["id"] is not None:
                self._apply(row)
        self.revision = rows[0]["revision"]
        self.refreshed_at = self._began_at
        if len(self._callers) > MAX_HELD_KEYS:
            now = time.time()
            self._callers = {key: caller for key, caller in self._callers.items() if caller.expires_at_s > now}
            self._hashes = {caller.key_id: key for key, caller in self._callers.items()} if self._sessions else {}


def _away() -> Unavailable:
    return Unavailable("This key cannot be checked for the moment; try again.", retry_after_s=1.0)
