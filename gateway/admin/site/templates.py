"""Writes pages from templates: everything is escaped, and only tags of ours get the nonce that htmx asks for."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension

from gateway.admin.site.assets import Assets
from gateway.admin.site.figures import FILTERS
from gateway.admin.site.frame import Frame
from gateway.version import VERSION

FOLDER = Path(__file__).parent.parent / "templates"

_NOW: ContextVar[Frame] = ContextVar("faregate_frame")
_TAG = re.compile(r"""<[a-zA-Z](?:[^<>"']|"[^"]*"|'[^']*')*?\shx-(?:[^<>"']|"[^"]*"|'[^']*')*>""", re.DOTALL)


class Nonces(Extension):
    """Writes `hx-nonce` into each tag of a template that has attributes of htmx.

    It looks at the template's text before anything is put into it: what comes from elsewhere never gets one.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Stamp the tags of one template."""
        return _TAG.sub(lambda found: f'{found[0][:-1].rstrip("/")} hx-nonce="{{{{ frame.nonce }}}}">', source)


class _Now:
    """The frame of the page that is being written, for templates and for macros."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_NOW.get(), name)


class Templates:
    """All templates, read once and kept."""

    def __init__(self, assets: Assets, *folders: Path) -> None:
        self.environment = Environment(
            loader=FileSystemLoader([FOLDER, *folders]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            extensions=[Nonces, "jinja2.ext.do"],
        )
        self.environment.globals |= {"frame": _Now(), "asset": assets.address, "version": VERSION}
        self.environment.filters |= FILTERS

    def write(self, name: str, frame: Frame, context: dict[str, Any]) -> str:
        """Write one template."""
        with _for(frame):
            return self.environment.get_template(name).render(context)


@contextmanager
def _for(frame: Frame) -> Iterator[None]:
    before = _NOW.set(frame)
    try:
        yield
    finally:
        _NOW.reset(before)
