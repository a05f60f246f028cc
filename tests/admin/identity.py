"""Identity providers for tests: a whole one from a package, and one whose tokens are as wrong as a test wants."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey

from gateway.stack.ports import free_port

START_S = 90.0


@contextmanager
def whole_provider(*users: dict[str, Any]) -> Iterator[str]:
    """Run `oidc-provider-mock` with some users for the length of a block; answers its issuer."""
    port = free_port()
    named = [part for user in users for part in ("--user-claims", json.dumps(user))]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true", *named]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    issuer = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + START_S
        while True:
            try:
                httpx.get(f"{issuer}/.well-known/openid-configuration").raise_for_status()
                break
            except httpx.HTTPError:
                assert time.monotonic() < end, "the provider does not answer"
                time.sleep(0.1)
        yield issuer
    finally:
        process.terminate()
        process.wait(START_S)


class LyingProvider:
    """A provider that checks what it is given, and answers as a test tells it."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.key = RSAKey.generate_key(2048, parameters={"kid": "first"})
        self.signed_by: Any = self.key
        self.algorithm = "RS256"
        self.claims: dict[str, Any] = {}
        self.endpoints: dict[str, Any] = {}
        self.challenge = ""
        """What the way there carried; the way back must have its verifier."""
        self.asked: list[str] = []

    def describe(self) -> dict[str, Any]:
        """Its description of itself."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **self.endpoints,
        }

    def token(self, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Give a token for a code, if the verifier fits."""
        hashed = hashlib.sha256(form["code_verifier"][0].encode()).digest()
        if base64.urlsafe_b64encode(hashed).rstrip(b"=").decode() != self.challenge or form["code"] != ["the-code"]:
            return 400, {"error": "invalid_grant"}
        header = {"alg": self.algorithm, "kid": "first"}
        if self.algorithm == "none":
            text = ".".join(_encoded(json.dumps(part).encode()) for part in (header, self.claims)) + "."
        elif self.algorithm == "HS256":
            text = _signed_with_a_secret(header, self.claims, self.key.as_pem(private=False))
        else:
            text = jwt.encode(header, self.claims, self.signed_by, algorithms=[self.algorithm])
        return 200, {"id_token": text, "access_token": "unused", "token_type": "Bearer"}


def _signed_with_a_secret(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    """The old confusion of algorithms: the public key, which everyone knows, as a shared secret."""
    said = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
    return f"{said}.{_encoded(hmac.new(secret, said.encode(), hashlib.sha256).digest())}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@contextmanager
def lying_provider() -> Iterator[LyingProvider]:
    """Run a LyingProvider for the length of a block."""
    port = free_port()
    provider = LyingProvider(port)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            found = {
                "/.well-known/openid-configuration": provider.describe(),
                "/keys": {"keys": [provider.key.as_dict(private=False)]},
            }.get(self.path)
            self.answer(200 if found else 404, found or {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            provider.asked.append(f"{self.path} {self.headers.get('authorization', '')}")
            self.answer(*provider.token(parse_qs(body)))

        def answer(self, status: int, content: dict[str, Any]) -> None:
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
