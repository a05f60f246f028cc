"""A reverse proxy that goes out from a loopback address of its own, and says whom it serves, as nginx does."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_OWN = frozenset({"connection", "content-length", "x-forwarded-proto"})
"""Headers that it writes itself."""


@contextmanager
def reverse_proxy(behind: str, address: str, *, said_proto: str = "https") -> Iterator[str]:
    """Forward to a server, going out from an address, for the length of a block; answers where it listens."""
    target = urlsplit(behind).netloc

    class Handler(BaseHTTPRequestHandler):
        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            onward = http.client.HTTPConnection(target, source_address=(address, 0), timeout=60)
            onward.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _OWN:
                    onward.putheader(name, value)
            onward.putheader("x-forwarded-for", self.client_address[0])
            onward.putheader("x-forwarded-proto", said_proto)
            onward.putheader("content-length", str(len(body)))
            onward.endheaders(body)
            answer = onward.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            onward.close()

        do_GET = do_POST = forward

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((address, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{address}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
