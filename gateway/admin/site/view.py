"""What a page's handler works with: who asks, the period, the form, and the ways to answer."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import parse_qsl

import msgspec
from litestar import Response
from litestar.response import Redirect

from gateway.admin.site.cookies import PATH, TOAST, TOAST_S, AnyRequest, Signer, Toast, brief_cookie
from gateway.admin.site.frame import Frame, Part
from gateway.admin.site.headers import NONCE, PAGE_ID
from gateway.admin.site.period import Period, read_period
from gateway.admin.site.templates import Templates
from gateway.admin.site.visitor import Visitor
from gateway.errors import Forbidden, InvalidRequest
from gateway.flow.origin import origin
from gateway.ledger.audit import Actor
from gateway.reports.csv_text import safe_cell

Format = Literal["html", "csv", "json"]
MOST_PARAMETERS = 200
_PARTS: Mapping[str, Part] = {"main": "main", "dialog-body": "dialog"}
"""What is written for which target of htmx."""
HTML = "text/html; charset=utf-8"


class View:
    """One call of a page."""

    def __init__(
        self, request: AnyRequest, visitor: Visitor | None, templates: Templates, signer: Signer, base_url: str
    ) -> None:
        self.request = request
        self._visitor = visitor
        self._templates = templates
        self._signer = signer
        self.base_url = base_url
        self.secure = base_url.startswith("https://") or origin().is_tls
        """Whether cookies are for TLS only."""
        self._given = _read_query(request.scope["query_string"])
        self.query: Mapping[str, str] = dict(self._given)
        """The parameters of the address; of a repeated one the last."""
        self._period: Period | None = None

    @property
    def visitor(self) -> Visitor:
        """Who asks. Raises Forbidden where nobody is signed in: only on pages for anyone."""
        if self._visitor is None:
            raise Forbidden("Sign in first.")
        return self._visitor

    @property
    def is_signed_in(self) -> bool:
        """Whether somebody is signed in."""
        return self._visitor is not None

    @property
    def period(self) -> Period:
        """The period that the address names. Raises InvalidRequest."""
        if self._period is None:
            self._period = read_period(self.query)
        return self._period

    @property
    def page_id(self) -> str:
        """The id of this call: in the logs, in audit rows, and on cards that failed."""
        return str(self.request.scope["state"][PAGE_ID])

    @property
    def actor(self) -> Actor:
        """Who asks, as stores write them into the audit log."""
        return msgspec.structs.replace(self.visitor.actor, request_id=self.page_id)

    @property
    def format(self) -> Format:
        """What the address asks for: `.csv` and `.json` behind a page's path, or `?format=`."""
        ending = self.request.url.path.rpartition(".")[2]
        asked = ending if ending in {"csv", "json"} else self.query.get("format", "html")
        if asked not in {"html", "csv", "json"}:
            raise InvalidRequest("'format' is csv, json or html.", param="format")
        return asked  # type: ignore[return-value]  # mypy does not narrow by a set

    @property
    def wants_data(self) -> bool:
        """Whether the address asks for CSV or JSON; false where it asks for what there is not."""
        try:
            return self.format != "html"
        except InvalidRequest:
            return False

    @property
    def is_htmx(self) -> bool:
        """Whether htmx asks, for a part of the page."""
        return self.request.headers.get("hx-request") == "true"

    async def form(self) -> dict[str, str]:
        """Read the fields of a form: each as text, stripped; of a repeated one the last."""
        fields = (await self.request.form()).multi_items()
        return {name: value.strip() for name, value in fields if isinstance(value, str)}

    async def choices(self, name: str) -> list[str]:
        """Read all values of a repeated field."""
        return [value for field, value in (await self.request.form()).multi_items() if field == name]

    def render(self, template: str, *, status: int = 200, **context: Any) -> Response[str]:
        """Answer with a page. Where htmx asks for `#main` or the dialog, only that is written."""
        toast = self._toast()
        frame = self.frame(toast)
        text = self._templates.write(template, frame, context)
        answer = Response(text, status_code=status, media_type=HTML, headers={"vary": "HX-Request, HX-Target"})
        if toast is not None:
            self._keep_toast(answer, None)
        return answer

    def confirm(self, *, status: int = 200, **context: Any) -> Response[str]:
        """Answer with the page that asks before something is done; templates/confirm.html has what it takes."""
        given = {"effects": (), "fields": (), "values": {}, "errors": {}, "type_name": "", "danger": False, **context}
        return self.render("confirm.html", status=status, **given)

    def redirect(self, path: str, *, toast: str = "", audit_id: int = 0, failed: bool = False) -> Response[Any]:
        """Lead on after a change, with a line that the next page shows; `audit_id` links it to the audit entry."""
        answer: Response[Any]
        if self.is_htmx:
            answer = Response("", status_code=200, headers={"hx-redirect": path}, media_type=HTML)
        else:
            answer = Redirect(path, status_code=303)
        if toast:
            self._keep_toast(answer, Toast(text=toast, kind="failed" if failed else "done", audit_id=audit_id))
        return answer

    def csv(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Response[str]:
        """Answer with a table that no spreadsheet takes for formulas."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(columns)
        writer.writerows([["" if cell is None else safe_cell(cell) for cell in row] for row in rows])
        headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
        return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)

    def json(self, content: Any) -> Response[bytes]:
        """Answer with data."""
        return Response(msgspec.json.encode(content), media_type="application/json")

    def frame(self, toast: Toast | None = None) -> Frame:
        """Make what templates know beside a page's own context."""
        state = self.request.scope["state"]
        target = self.request.headers.get("hx-target", "") if self.is_htmx else ""
        part = _PARTS.get(target.rpartition("#")[2], "page")
        theme = self.request.cookies.get("faregate_theme", "auto")
        return Frame(
            visitor=self._visitor,
            path=self.request.url.path,
            query=self._given,
            period=self._period_shown(),
            nonce=state[NONCE],
            page_id=state[PAGE_ID],
            part=part,
            toast=toast,
            theme=theme if theme in {"light", "dark"} else "auto",
        )

    def _period_shown(self) -> Period:
        """Give the period; the default where the address names none that there is, so that the refusal has a page."""
        try:
            return self.period
        except InvalidRequest:
            return read_period({})

    def _toast(self) -> Toast | None:
        signed = self.request.cookies.get(TOAST, "")
        content = self._signer.read("toast", signed) if signed else None
        return msgspec.json.decode(content, type=Toast) if content is not None else None

    def _keep_toast(self, answer: Response[Any], toast: Toast | None) -> None:
        kind = "owner" if self.request.url.path.startswith(PATH["owner"]) else "operator"
        value = self._signer.sign("toast", msgspec.json.encode(toast)) if toast else ""
        answer.set_cookie(brief_cookie(TOAST, value, path=PATH[kind], secure=self.secure, lasts_s=TOAST_S))


def _read_query(query: bytes) -> list[tuple[str, str]]:
    """Read an address's parameters in their order, in which links give them on; too many are none."""
    try:
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return []
