"""Where Redis is: the parts of a `redis://` URL."""

from urllib.parse import parse_qs, unquote, urlsplit

import msgspec


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a Redis or Valkey; `path` names a Unix socket and wins over host and port."""

    host: str = "127.0.0.1"
    port: int = 6379
    path: str = ""
    database: int = 0
    username: str = ""
    password: str = ""
    tls: bool = False

    def __str__(self) -> str:
        """Say where, without the password."""
        return self.path or f"{self.host}:{self.port}"


def parse_address(url: str) -> Address:
    """Read `redis://user:password@host:port/database`, `rediss://` (TLS) or `unix:///path?db=n`. Raises ValueError."""
    parts = urlsplit(url)
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    query = parse_qs(parts.query)
    asked = query.get("db", ["0"])[0]
    if parts.scheme == "unix":
        password = password or query.get("password", [""])[0]
        return Address(path=unquote(parts.path), database=int(asked), username=username, password=password)
    if parts.scheme not in {"redis", "rediss"}:
        raise ValueError("a Redis URL begins with redis://, rediss:// or unix://")
    return Address(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 6379,
        database=int(parts.path.strip("/") or asked),
        username=username,
        password=password,
        tls=parts.scheme == "rediss",
    )
