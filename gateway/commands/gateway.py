"""`faregate gateway`: the process that serves the REST API."""

import socket
import sys

import click
import uvicorn

from gateway.app.create import create_app
from gateway.commands.draining import DrainingServer
from gateway.log import configure_logs
from gateway.process import process_settings

DRAIN_S = 25
"""How long a gateway that is told to stop waits for the calls it serves."""


@click.command("gateway")
def gateway() -> None:
    """Serve the REST API, configured by FAREGATE_ settings."""
    settings = process_settings()
    configure_logs(settings.log_level, role="gateway")
    # Litestar takes up pydantic where it is installed: 9 MB for models that we have none of.
    sys.modules.setdefault("pydantic", None)  # type: ignore[arg-type]
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        interface="asgi3",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        log_level="warning",
        backlog=4096,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=DRAIN_S,
    )
    inherited = [socket.socket(fileno=settings.listen_fd)] if settings.listen_fd >= 0 else None
    DrainingServer(config, app.litestar.state.readiness, settings.drain_notice_s).run(sockets=inherited)


commands: list[click.Command] = [gateway]
