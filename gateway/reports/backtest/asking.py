"""Drafts as callers of the admin API name them: models, lists and accounts that are there, prices that fit."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.model import Sold
from gateway.catalog.price_rules import price_problems
from gateway.db.accounts import account
from gateway.errors import NotFound, Unprocessable
from gateway.ledger.prices.reading import in_force, named_list, named_model, versions_of
from gateway.ledger.transaction import transaction
from gateway.pricing.backtest import DiscountDraft, PriceDraft
from gateway.pricing.policy import OutcomePolicy


async def price_draft(
    engine: AsyncEngine, model: str, price_list: str | None, sold: Sold, outcome: OutcomePolicy | None = None
) -> PriceDraft:
    """Make the draft of a price. Raises NotFound, or Unprocessable where it does not fit its model."""
    async with transaction(engine) as connection:
        found = await named_model(connection, model)
        list_id = await named_list(connection, price_list)
        now = in_force(await versions_of(connection, found.id, list_id))
    for problem in price_problems(found, sold):
        said = f"{problem.place}: expected {problem.expected}, found {problem.found}"
        raise Unprocessable(said, code="price_misfit", param=problem.place)
    return PriceDraft(
        model_id=found.id,
        model=found.name,
        price_list_id=list_id,
        components=sold.rows,
        minimum_nanos=sold.minimum_nanos,
        outcome=outcome or (now.outcome if now else found.outcome),
    )


async def discount_draft(engine: AsyncEngine, account_id: int, discount_ppm: int) -> DiscountDraft:
    """Make the draft of a discount. Raises NotFound."""
    async with transaction(engine) as connection:
        found = await connection.execute(select(account.c.id).where(account.c.id == account_id))
        if found.scalar_one_or_none() is None:
            raise NotFound("There is no such account.", code="account_not_found", param="account_id")
    return DiscountDraft(account_id=account_id, discount_ppm=discount_ppm)
