"""How a command finds a running Faregate and speaks to its `/admin/api`."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
import httpx
import msgspec
from click.core import ParameterSource

P = ParamSpec("P")
T = TypeVar("T")

TIMEOUT_S = 30.0
CONNECTION_FILE = "connection.json"


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """What `connection.json` says about a running system, or the environment about a distant one."""

    base_url: str
    admin_key: str
    database_url: str = ""
    redis_url: str = ""
    blob_url: str = ""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """The system a command is for, and how its answer is to be printed."""

    connection: Connection
    as_json: bool
    data: Path | None = None
    """The folder of a system on this machine."""


class CommandError(click.ClickException):
    """A command was refused: one line, exit code 1."""

    def show(self, file: Any = None) -> None:
        """Print the one line on the error stream."""
        click.echo(f"faregate: {self.message}", err=True)


class NotReached(CommandError):
    """The system was not found or does not answer: one line, exit code 2."""

    exit_code = 2


class _Problem(msgspec.Struct, frozen=True):
    message: str
    code: str = ""
    param: str | None = None


class _Refusal(msgspec.Struct, frozen=True):
    error: _Problem


class AdminApi:
    """The admin API of one system, typed. Use it as a context manager."""

    def __init__(self, connection: Connection) -> None:
        self._base_url = connection.base_url.rstrip("/")
        self._http = httpx.Client(
            base_url=f"{self._base_url}/admin/api",
            headers={
                "Authorization": f"Bearer {connection.admin_key}",
                "Accept": "application/json",
                "X-Faregate-Door": "cli",
            },
            timeout=TIMEOUT_S,
            trust_env=False,
        )

    def __enter__(self) -> "AdminApi":
        """Begin; connections open on first use."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        """Read one answer. Raises CommandError."""
        return self._decode(self._send("GET", path, query=query), kind)

    def get_text(self, path: str, query: Mapping[str, str]) -> str:
        """Read one answer as text, as it comes. Raises CommandError."""
        return self._send("GET", path, query=query).text

    def post(self, path: str, kind: type[T], body: object = None) -> T:
        """Change something. Raises CommandError with the system's own words when it is refused."""
        return self._decode(self._send("POST", path, body=body), kind)

    def _send(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: object = None
    ) -> httpx.Response:
        content = msgspec.json.encode(body) if body is not None else None
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            answer = self._http.request(method, path, params=query, content=content, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotReached(f"no answer from {self._base_url}: {error}") from None
        if answer.status_code >= 400:
            raise CommandError(_refusal(answer))
        return answer

    def _decode(self, answer: httpx.Response, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.MsgspecError as error:
            raise NotReached(f"{self._base_url} answers in a shape this command does not know: {error}") from None


def _refusal(answer: httpx.Response) -> str:
    """Say why the system refused, in its own words where it has any."""
    try:
        return msgspec.json.decode(answer.content, type=_Refusal).error.message
    except msgspec.MsgspecError:
        return f"{answer.request.url} answers {answer.status_code}"


def read_connection(data: Path) -> Connection:
    """Read a data directory's `connection.json`. Raises CommandError with what to do."""
    path = data / CONNECTION_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Connection)
    except FileNotFoundError:
        raise NotReached(
            f"no {path}: start the system with 'faregate up', name its folder with --data, "
            "or set FAREGATE_URL and FAREGATE_ADMIN_KEY",
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise NotReached(f"{path} cannot be read: {error}") from None


def find_system(data: Path, url: str, admin_key: str, *, data_was_given: bool, as_json: bool = False) -> System:
    """Find the system: `--data` where it was given, else FAREGATE_URL and FAREGATE_ADMIN_KEY, else `./data`."""
    if data_was_given or not url:
        return System(connection=read_connection(data), as_json=as_json, data=data)
    if not admin_key:
        raise NotReached("FAREGATE_URL is set and FAREGATE_ADMIN_KEY is not: set both")
    return System(connection=Connection(base_url=url, admin_key=admin_key), as_json=as_json)


def system_command(command: Callable[Concatenate[System, P], T]) -> Callable[P, T]:
    """Give a click command `--data` and `--json`, and the System they name as its first argument."""

    @click.option(
        "--data",
        type=click.Path(path_type=Path),
        default=Path("data"),
        envvar="FAREGATE_DATA",
        show_default=True,
        help="The folder of a running system: its connection.json says where it is.",
    )
    @click.option("--url", default="", envvar="FAREGATE_URL", hidden=True)
    @click.option("--admin-key", default="", envvar="FAREGATE_ADMIN_KEY", hidden=True)
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.pass_context
    @functools.wraps(command)
    def wrapped(context: click.Context, *args: Any, **options: Any) -> T:
        system = find_system(
            options.pop("data"),
            options.pop("url"),
            options.pop("admin_key"),
            data_was_given=context.get_parameter_source("data") is ParameterSource.COMMANDLINE,
            as_json=options.pop("as_json"),
        )
        return command(system, *args, **options)

    return wrapped
