"""How a page is registered: `@page` for what is read, `@action` for what is changed.

Each says what it needs of who asks, and nothing is served that does not say it.
"""

from collections.abc import Callable
from typing import Any

from litestar import get, post
from litestar.handlers import HTTPRouteHandler

from gateway.admin.site.roles import Need

MOST_FORM_BYTES = 256 * 1024

Handler = Callable[..., Any]


def page(path: str, *, needs: Need = "viewer", data: bool = True) -> Callable[[Handler], HTTPRouteHandler]:
    """Serve GET. With `data` the page is served at `.csv` and `.json` too, where the path does not end in a parameter.

    Where it does, `?format=csv` asks for the same; `View.format` says what was asked for.
    """
    paths = [path]
    if data and not path.endswith("}"):
        paths += [f"{path}.csv", f"{path}.json"]
    return get(paths, opt={"needs": needs}, include_in_schema=False, status_code=200)


def action(path: str, *, needs: Need, most_bytes: int = MOST_FORM_BYTES) -> Callable[[Handler], HTTPRouteHandler]:
    """Serve POST: a form with its token. `most_bytes` bounds the form."""
    return post(
        path,
        opt={"needs": needs},
        include_in_schema=False,
        status_code=200,
        request_max_body_size=most_bytes,
    )
