"""Web servers for tests on loopback addresses of their own, which a gateway may be allowed to reach or not."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ALLOWED = "127.0.0.2"
"""A loopback address that the tests' gateway may reach; 127.0.0.1 it may not."""

Page = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """A web server, and the requests that came."""

    def __init__(self, port: int, pages: dict[str, Page]) -> None:
        self.port = port
        self.pages = pages
        self.seen: list[tuple[str, str, str]] = []
        """Path, `Host` and `Authorization` of each request."""

    def url(self, path: str, host: str = ALLOWED) -> str:
        """Give the address of a page."""
        return f"http://{host}:{self.port}{path}"


@contextmanager
def website(pages: dict[str, Page], host: str = ALLOWED) -> Iterator[Site]:
    """Run a web server for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            site.seen.append((path, self.headers.get("host", ""), self.headers.get("authorization", "")))
            page = site.pages.get(path)
            if page is None:
                self.send_error(404)
            else:
                page(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    site = Site(server.server_port, pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def gives(data: bytes, media_type: str = "image/png", **headers: str) -> Page:
    """Make a page that answers with a file."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", media_type)
        handler.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return page


def leads_to(target: str, status: int = 302) -> Page:
    """Make a page that redirects."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("location", target)
        handler.send_header("content-length", "0")
        handler.end_headers()

    return page
