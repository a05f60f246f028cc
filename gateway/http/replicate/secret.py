"""What webhooks are signed with, where Replicate's clients look for it."""

from litestar import Controller, Response, get
from litestar.di import NamedDependency

from gateway.http.dialect import Asking
from gateway.http.errors import replicate_body
from gateway.http.handlers import handlers_of
from gateway.http.replicate.predictions import Replicate
from gateway.http.replicate.views import PREFIX
from gateway.webhooks.secrets import Secrets


class ReplicateSecretController(Controller):
    """The signing secret of an account."""

    path = f"{PREFIX}/webhooks/default"
    tags = ("Replicate",)
    exception_handlers = handlers_of(replicate_body)

    @get("/secret", summary="What webhooks are signed with; the first look makes it")
    async def show(
        self, request: Asking, replicate: NamedDependency[Replicate], signing: NamedDependency[Secrets]
    ) -> Response[dict[str, str]]:
        """Show the secret of the account."""
        caller = await replicate.caller(request)
        kept = await signing.show(caller.account_id)
        return Response({"key": kept.secret}, headers={"cache-control": "no-store"})
