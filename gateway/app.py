"""The gateway process, wired: the only place where its parts meet."""

import asyncio
import contextlib
import os
import random
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import structlog
from litestar import Litestar, Router
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.handlers import asgi
from litestar.openapi import OpenAPIConfig
from litestar.types import Receive, Scope, Send

from gateway.admin.api import admin_router
from gateway.blobs.local import LocalBlobs
from gateway.catalog.snapshot import SnapshotSource
from gateway.db.session import HotSession, slow_engine
from gateway.errors import FaregateError
from gateway.flow.floor import Floor
from gateway.flow.resend import Resend
from gateway.flow.watch import Watch
from gateway.flow.way import Way
from gateway.http.departures import Departures
from gateway.http.endpoint import Desk, Endpoint
from gateway.http.errors import handle_faregate, handle_http, handle_unexpected
from gateway.http.health import live, metrics, ready
from gateway.http.models import ModelsController
from gateway.http.native.requests import RequestsController
from gateway.http.native.submit import SubmitEndpoint
from gateway.http.openai.chat import ChatFamily
from gateway.http.openai.completions import CompletionFamily
from gateway.http.openai.embeddings import EmbeddingFamily
from gateway.http.openai.speech import SpeechFamily
from gateway.http.openapi import openapi_json, openapi_page
from gateway.ledger.admission import Admission
from gateway.ledger.keyring import Keyring
from gateway.ledger.open_requests import OpenRequests
from gateway.metrics import Metrics
from gateway.readiness import Readiness
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes
from gateway.settings import Settings
from gateway.version import VERSION

log = structlog.get_logger()


def gateway_name() -> str:
    """Name this process; replies for it are addressed by this name."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(3).hex()}"
