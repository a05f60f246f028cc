"""What is done about webhooks: telling one event or many again, a test, a new secret. Each asks first."""

from typing import Any
from urllib.parse import urlencode

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath

from gateway.admin.pages.webhook_query import asked, chips_of
from gateway.admin.site.figures import count, ms
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.net.addresses import UrlNotAllowed
from gateway.webhooks.deliveries import MOST_AGAIN, MOST_COUNTED, Deliveries, DeliveryQuery
from gateway.webhooks.secrets import Secrets
from gateway.webhooks.trial import Trials

HOME = "/admin/webhooks"


@page("/admin/webhooks/deliveries/{event_id:str}/redeliver", needs="billing", data=False)
async def ask_redeliver(
    view: NamedDependency[View], deliveries: NamedDependency[Deliveries], event_id: FromPath[str]
) -> Response[Any]:
    """Ask before an event is told again."""
    delivery = await deliveries.show(None, event_id)
    effects = [
        f"{delivery.url} is told {delivery.type} of {delivery.request_id} again, now, under the same id.",
        f"It was tried {count(delivery.tries)} times so far. If it fails, a whole new schedule of a day begins.",
    ]
    return view.confirm(
        title="Redeliver this event",
        act=f"{HOME}/deliveries/{event_id}/redeliver",
        button="Redeliver",
        effects=effects,
        back=f"{HOME}/deliveries/{event_id}",
    )


@action("/admin/webhooks/deliveries/{event_id:str}/redeliver", needs="billing")
async def redeliver(
    view: NamedDependency[View], deliveries: NamedDependency[Deliveries], event_id: FromPath[str]
) -> Response[Any]:
    """Tell an event again."""
    delivery = await deliveries.redeliver(None, event_id, by=view.actor)
    return view.redirect(f"{HOME}/deliveries/{event_id}", toast=f"{delivery.type} is told again.")


@page("/admin/webhooks/redeliver", needs="billing", data=False)
async def ask_redeliver_all(view: NamedDependency[View], deliveries: NamedDependency[Deliveries]) -> Response[Any]:
    """Ask before all events that match are told again."""
    return await _ask_all(view, deliveries, asked({**view.query, "after": ""}))


@action("/admin/webhooks/redeliver", needs="billing")
async def redeliver_all(view: NamedDependency[View], deliveries: NamedDependency[Deliveries]) -> Response[Any]:
    """Tell all events that match again, the latest thousand of them."""
    form = await view.form()
    done, audit_id = await deliveries.redeliver_all(asked({**form, "after": ""}), by=view.actor)
    query = {name: form[name] for name in ("account", "host", "request") if form.get(name)}
    said = f"{count(done)} events are told again."
    return view.redirect(f"{HOME}?{urlencode(query)}" if query else HOME, toast=said, audit_id=audit_id)


async def _ask_all(view: View, deliveries: Deliveries, query: DeliveryQuery) -> Response[Any]:
    found = await deliveries.count(query)
    shown = f"more than {count(MOST_COUNTED)}" if found > MOST_COUNTED else count(found)
    which = ", ".join(f"{label.lower()} {value}" for _, label, value in chips_of(query)) or "no filter: all of them"
    effects = [f"{shown} events match ({which})."]
    if found > MOST_AGAIN:
        effects.append(f"The latest {count(MOST_AGAIN)} of them are told again; come back for the rest.")
    effects.append("Each keeps its id, so that a receiver that had it can drop it.")
    fields = [{"name": name, "kind": "hidden", "value": view.query.get(name, "")} for name in _FIELDS]
    return view.confirm(
        title=f"Redeliver {count(min(found, MOST_AGAIN))} events",
        act=f"{HOME}/redeliver",
        button="Redeliver",
        effects=effects,
        fields=fields,
        back=HOME,
    )


_FIELDS = ("account", "host", "request", "state")


@page("/admin/webhooks/accounts/{account_id:int}/test", needs="owner", data=False)
async def ask_test(view: NamedDependency[View], account_id: FromPath[int]) -> Response[Any]:
    """Ask where a test goes."""
    return _ask_test(view, account_id, {"url": view.query.get("url", "")})


@action("/admin/webhooks/accounts/{account_id:int}/test", needs="owner")
async def test(
    view: NamedDependency[View], trials: NamedDependency[Trials], account_id: FromPath[int]
) -> Response[Any]:
    """Send a test, and say what came back."""
    form = await view.form()
    try:
        heard = await trials.send(account_id, form.get("url", ""), by=view.actor)
    except UrlNotAllowed as refusal:
        return _ask_test(view, account_id, form, status=422, errors={"url": refusal.message})
    if heard.well:
        return view.redirect(
            HOME, toast=f"The test arrived: {heard.status} after {ms(heard.took_ms)}.", audit_id=heard.audit_id
        )
    said = f"The test did not arrive: {heard.error}, after {ms(heard.took_ms)}."
    return view.redirect(HOME, toast=said, audit_id=heard.audit_id, failed=True)


def _ask_test(view: View, account_id: int, values: dict[str, str], **given: Any) -> Response[Any]:
    return view.confirm(
        title="Send a test",
        act=f"{HOME}/accounts/{account_id}/test",
        button="Send",
        effects=[
            f"One event of type webhook.test goes there now, signed with the secret of account {account_id}.",
            "It is tried once, and is no part of the deliveries.",
        ],
        fields=[{"name": "url", "label": "Address", "kind": "url", "required": True}],
        values=values,
        back=HOME,
        **given,
    )


@page("/admin/webhooks/accounts/{account_id:int}/rotate", needs="owner", data=False)
async def ask_rotate(
    view: NamedDependency[View], signing: NamedDependency[Secrets], account_id: FromPath[int]
) -> Response[Any]:
    """Ask before a secret is replaced."""
    current = await signing.show(account_id)
    effects = [
        f"What signs the webhooks of account {account_id} since {current.created_at:%Y-%m-%d} is replaced.",
        "The one before signs beside it for another 24 hours, so that receivers can change over.",
        "The new secret is shown once, on the next page; the account's owner can read it with their key.",
    ]
    return view.confirm(
        title="Rotate the signing secret",
        act=f"{HOME}/accounts/{account_id}/rotate",
        button="Rotate",
        effects=effects,
        back=HOME,
    )


@action("/admin/webhooks/accounts/{account_id:int}/rotate", needs="owner")
async def rotate(
    view: NamedDependency[View], signing: NamedDependency[Secrets], account_id: FromPath[int]
) -> Response[Any]:
    """Replace a secret, and show the new one."""
    made = await signing.rotate(account_id, by=view.actor)
    return view.render("webhook_secret.html", made=made, account_id=account_id)


WEBHOOK_ACTIONS = (
    ask_redeliver,
    redeliver,
    ask_redeliver_all,
    redeliver_all,
    ask_test,
    test,
    ask_rotate,
    rotate,
)
