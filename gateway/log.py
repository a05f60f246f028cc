"""Logs: one JSON object a line on standard error, each with an action name; never prompts, outputs or keys."""

import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog


def configure_logs(level: str, **bound: str) -> None:
    """Set up structlog, and the servers' own loggers with it; `bound` stands on every line."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("action"),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper(), logging.INFO)),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**bound)


_LINES = msgspec.json.Encoder()


def log_requests(rows: Sequence[dict[str, Any]]) -> None:
    """Write one line for each finished request, all in one write: structlog's path would double the settler's work."""
    stamp = datetime.now(UTC).isoformat()
    sys.stderr.write(
        "".join(
            [_LINES.encode({"action": "request.settled", **row, "timestamp": stamp}).decode() + "\n" for row in rows]
        )
    )
