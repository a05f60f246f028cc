"""What an operator may do: a viewer reads, billing changes money as well, an owner does all."""

from typing import Literal, get_args

Role = Literal["viewer", "billing", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)
"""From the least to the most."""

Need = Literal["anyone", "viewer", "billing", "owner", "key"]
"""What a page asks of who opens it; `key` is a session of an API key's owner, `anyone` needs none."""


def may(role: str, needs: str) -> bool:
    """Say whether an operator of a role may do what asks for another."""
    return role in ROLES and needs in ROLES and ROLES.index(role) >= ROLES.index(needs)
