"""HTTPS in front of a server without: for clients that speak nothing else. The authority is made for the run."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.system import System

HOST = "localhost"
PIECE_BYTES = 64 * 1024


class Secured(msgspec.Struct, frozen=True):
    """A running system, and its public address."""

    system: System
    url: str


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificates(folder: Path) -> tuple[Path, Path]:
    """Make an authority, and a certificate for `localhost` that it has signed; answers both files."""
    now = datetime.now(UTC)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    identity = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())

    def begun(subject: str, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        made = x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name("Faregate tests"))
        made = made.public_key(public).serial_number(x509.random_serial_number())
        return made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))

    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    authority = (
        begun("Faregate tests", authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identity, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identity)
    own = (
        begun(HOST, key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    trusted, served = folder / "authority.pem", folder / "server.pem"
    trusted.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    served.write_bytes(secret + own.public_bytes(serialization.Encoding.PEM))
    return trusted, served


class Terminator:
    """Listens with TLS and hands everything on to `port` of this machine."""

    def __init__(self, folder: Path) -> None:
        self.trusted, self._served = certificates(folder)
        self.own_port = 0
        self.port = 0
        """Where it is handed on to; set before the first call."""

    async def start(self) -> asyncio.Server:
        """Begin to listen."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._served)
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.own_port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.port)
            both = {
                asyncio.create_task(_pour(reader, back)),
                asyncio.create_task(_pour(there, writer)),
            }
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            back.close()
        finally:
            writer.close()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()


@contextmanager
def secured(folder: Path) -> Iterator[Terminator]:
    """Run a terminator in a thread for the length of a block."""
    terminator = Terminator(folder)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # connections that clients drop are no trouble here
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(terminator.start(), loop).result()

    async def stop() -> None:
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield terminator
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
