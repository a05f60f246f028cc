"""What each of several months comes to, for the list of statements."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.reports.asking import groups, page_session
from gateway.reports.ranges import Range
from gateway.reports.scope import Question, Scope, Sums, add_up
from gateway.reports.statements.month import Month
from gateway.reports.statements.read import Whose


async def spent_by_month(engine: AsyncEngine, whose: Whose, months: Sequence[Month]) -> dict[str, Sums]:
    """Sum the requests and charges of months, the latest of them first, by the month's name; refunds are apart."""
    whole_hour = months[-1].from_at.replace(minute=0)
    asked = Question(
        range=Range(whole_hour, months[0].to_at.replace(minute=0)),
        scope=Scope(account_id=whose.account_id, key_id=whose.key_id),
        group_by=("day",),
        zone_name=months[0].zone_name,
        units=False,
        latencies=False,
    )
    async with page_session(engine) as session:
        days = await groups(session, asked)
    by_month: dict[str, list[Sums]] = defaultdict(list)
    for each in days:
        if each.day is not None:
            by_month[f"{each.day:%Y-%m}"].append(each.sums)
    return {month.name: add_up(by_month[month.name]) for month in months}
