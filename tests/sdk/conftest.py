"""A running system with names of other clouds, reached by HTTPS, and the clients that want it so."""

import importlib
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from gateway.catalog.export import export
from gateway.catalog.load import load_file
from tests.conftest import absent
from tests.rooms import enter, leave
from tests.sdk.secured import HOST, Secured, secured
from tests.system import running_system

DEMO = 1
"""The account of `system.api_key`, which all files of this folder spend from."""
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def dialects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Answer a running system with the models of tests/media.yaml and dialects.yaml, behind a public HTTPS address."""
    if find_spec("PIL") is None or find_spec("av") is None:
        absent("Pillow and PyAV")
    folder = tmp_path_factory.mktemp("dialects")
    folder.chmod(0o711)
    media, ours = load_file(HERE.parent / "media.yaml"), load_file(HERE / "dialects.yaml")
    both = msgspec.structs.replace(
        ours, pools=media.pools | ours.pools, models=media.models | ours.models, prices=media.prices | ours.prices
    )
    catalog = folder / "catalog.yaml"
    catalog.write_text(export(both))
    terminator = enter(secured(folder))
    url = f"https://{HOST}:{terminator.own_port}"
    environ = {"FAREGATE_PUBLIC_URL": url, "FAREGATE_FETCH_ALLOW": "127.0.0.1"}
    system = enter(running_system(folder / "data", "--catalog", str(catalog), engines="fake,upstream", environ=environ))
    terminator.port = int(urlsplit(system.connection()["base_url"]).port or 0)
    enter(pytest.MonkeyPatch.context()).setenv("SSL_CERT_FILE", str(terminator.trusted))
    system.wait_ready("fake-flux", "fake-chat", "fake-image-slow", "fake-narrow")
    system.top_up(DEMO, "1000")
    yield Secured(system, url)
    leave()


@pytest.fixture(scope="session")
def fal_client(dialects: Secured) -> ModuleType:
    """Answer fal's client with its hosts changed: two by its environment, two that it has written down."""
    host = dialects.url.removeprefix("https://")
    os.environ |= {"FAL_RUN_HOST": f"{host}/fal/run", "FAL_QUEUE_RUN_HOST": f"{host}/fal"}
    os.environ["FAL_KEY"] = dialects.system.api_key
    module = importlib.import_module("fal_client")
    inner: Any = importlib.import_module("fal_client.client")
    inner.REST_URL = inner.CDN_URL = f"{dialects.url}/fal"
    return module
