"""The calls that predictions of Replicate share, whether they make files or text: see `replicate`."""

from typing import Any

from workers.engine import EngineError, RefusedInput
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.results import text_at
from workers.engines.upstream.verdicts import buying

LEAST_CANCEL_S = 5
"""The shortest `Cancel-After`."""


async def create(call: Call, given: dict[str, Any], headers: dict[str, str], **more: Any) -> Any:
    """Create a prediction of the target's model."""
    name, _, version = call.target.model.partition(":")
    body: dict[str, Any] = {"input": given, **more}
    if version or "/" not in name:
        path, body["version"] = "/predictions", version or name
    elif name.startswith("deployments/"):
        path = f"/{name}/predictions"
    else:
        path = f"/models/{name}/predictions"
    with buying():
        return await call.link.json("POST", path, json=body, headers=headers)


def cancel_after(call: Call) -> dict[str, str]:
    """Ask that the prediction be ended when its request's time is over, should nobody here be left to do so."""
    request = call.run.request
    if not request.deadline_ms or not request.enqueued_us:
        return {}
    return {"cancel-after": str(max(LEAST_CANCEL_S, (request.deadline_ms - request.enqueued_us // 1000) // 1000 + 1))}


async def cancel(call: Call, prediction: str) -> None:
    """Cancel a prediction that has not ended."""
    try:
        await call.link.call("POST", f"/predictions/{prediction}/cancel")
    except (EngineError, RefusedInput):
        return


def prediction_id(told: Any) -> str:
    """Read the id of a prediction. Raises UpstreamFailed for one that is unusable."""
    found = text_at(told, "id")
    if not found or len(found) > 128 or not found.replace("-", "").replace("_", "").isalnum():
        raise unreadable("a prediction without a usable id")
    return found
