"""Which role somebody has whom the provider names: by e-mail, or by a claim such as groups."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.admin.site.roles import ROLES, Role
from gateway.errors import Forbidden
from gateway.settings import Settings


class OidcConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about the provider."""

    issuer: str
    client_id: str
    client_secret: str
    role_claim: str = ""
    """The claim whose values are looked up; empty takes the e-mail, which the provider must have verified."""
    members: Mapping[Role, frozenset[str]] = {}
    """Of each role, the e-mails or the claim's values."""


def config_of(settings: Settings) -> OidcConfig | None:
    """Read what the settings say; None where they name no provider."""
    if not settings.oidc_issuer:
        return None
    return OidcConfig(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        role_claim=settings.oidc_role_claim,
        members=members_of(settings.oidc_owners, settings.oidc_billing, settings.oidc_viewers),
    )


def members_of(owners: str, billing: str, viewers: str) -> Mapping[Role, frozenset[str]]:
    """Read the three lists of the settings."""
    named: dict[Role, str] = {"owner": owners, "billing": billing, "viewer": viewers}
    return {role: frozenset(part.strip().lower() for part in text.split(",") if part.strip())
            for role, text in named.items()}  # fmt: skip


def role_of(config: OidcConfig, claims: Mapping[str, Any]) -> Role:
    """Give the highest role that the claims have. Raises Forbidden where they have none."""
    values = _values(config, claims)
    for role in reversed(ROLES):
        if values & config.members.get(role, frozenset()):
            return role
    raise Forbidden("You are known, and have no role here: ask an owner of this system.", code="role_needed")


def name_of(claims: Mapping[str, Any]) -> str:
    """Give what the audit log calls them: their e-mail where it is verified, else the provider's own id."""
    email = claims.get("email")
    if isinstance(email, str) and claims.get("email_verified") is True and email.isprintable():
        return email[:200]
    return f"oidc {str(claims['sub'])[:100]}"


def _values(config: OidcConfig, claims: Mapping[str, Any]) -> set[str]:
    if config.role_claim:
        found = claims.get(config.role_claim)
        given = found if isinstance(found, list) else [found]
    else:
        given = [claims.get("email")] if claims.get("email_verified") is True else []
    return {value.strip().lower() for value in given if isinstance(value, str)}
