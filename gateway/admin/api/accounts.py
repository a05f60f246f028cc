"""`/admin/api/accounts`."""

from typing import Annotated

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter

from gateway.admin.api.bodies import AccountList, Adjust, AlertUrl, CreateAccount, CreditLimit, Retention, TopUp
from gateway.ledger.accounts import MAX_PAGE, Accounts, NewAccount
from gateway.ledger.audit import Actor
from gateway.ledger.records import Account

AccountId = Annotated[int, PathParameter(ge=1, le=2**63 - 1)]
After = Annotated[int, QueryParameter(ge=0, le=2**63 - 1, description="The last id of the page before.")]
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)]


class AccountsController(Controller):
    """Who pays."""

    path = "/accounts"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @post(summary="Create an account, prepaid or postpaid")
    async def create(
        self, data: JSONBody[CreateAccount], accounts: NamedDependency[Accounts], by: NamedDependency[Actor]
    ) -> Account:
        """Create an account; an opening balance is booked as a top-up."""
        return await accounts.create(
            NewAccount(
                name=data.name,
                kind=data.kind,
                balance_nanos=data.balance_nanos,
                credit_limit_nanos=data.credit_limit_nanos,
            ),
            by=by,
        )

    @get(summary="All accounts, by id")
    async def list_accounts(
        self, accounts: NamedDependency[Accounts], after: After = 0, limit: Limit = 100
    ) -> AccountList:
        """List one page of accounts."""
        page = await accounts.list(after_id=after, limit=limit)
        return AccountList(accounts=list(page), next_after=page[-1].id if len(page) == limit else None)

    @get("/{account_id:int}", summary="One account, with what is available, held and spent")
    async def show(self, account_id: AccountId, accounts: NamedDependency[Accounts]) -> Account:
        """Show one account."""
        return await accounts.show(account_id)

    @post("/{account_id:int}/top-up", status_code=200, summary="Book money that came in")
    async def top_up(
        self,
        account_id: AccountId,
        data: JSONBody[TopUp],
        accounts: NamedDependency[Accounts],
        by: NamedDependency[Actor],
    ) -> Account:
        """Book a top-up, once for each transaction id."""
        return await accounts.top_up(
            account_id, data.amount_nanos, reason=data.reason, transaction_id=data.transaction_id, by=by
        )

    @post("/{account_id:int}/adjust", status_code=200, summary="Correct a balance, with the reason")
    async def adjust(
        self,
        account_id: AccountId,
        data: JSONBody[Adjust],
        accounts: NamedDependency[Accounts],
        by: NamedDependency[Actor],
    ) -> Account:
        """Book an adjustment, once for each transaction id."""
        return await accounts.adjust(
            account_id, data.amount_nanos, reason=data.reason, transaction_id=data.transaction_id, by=by
        )

    @post("/{account_id:int}/credit-limit", status_code=200, summary="Change a postpaid account's credit limit")
    async def set_credit_limit(
        self,
        account_id: AccountId,
        data: JSONBody[CreditLimit],
        accounts: NamedDependency[Accounts],
        by: NamedDependency[Actor],
    ) -> Account:
        """Change how far the account may go below zero."""
        return await accounts.set_credit_limit(account_id, data.credit_limit_nanos, by=by)

    @post("/{account_id:int}/retention", status_code=200, summary="Say for how long outputs and media are kept")
    async def set_retention(
        self,
        account_id: AccountId,
        data: JSONBody[Retention],
        accounts: NamedDependency[Accounts],
        by: NamedDependency[Actor],
    ) -> Account:
        """Change the retention of what ends, and of files that are uploaded, from now on."""
        return await accounts.set_retention(account_id, data.keep_media_s, by=by)

    @post("/{account_id:int}/alert-url", status_code=200, summary="Say where budgets that run out are told")
    async def set_alert_url(
        self,
        account_id: AccountId,
        data: JSONBody[AlertUrl],
        accounts: NamedDependency[Accounts],
        by: NamedDependency[Actor],
    ) -> Account:
        """Change where the account is told that a budget is used up to 50, 80 or 100%; null tells nobody."""
        return await accounts.set_alert_url(account_id, data.alert_url, by=by)

    @post("/{account_id:int}/suspend", status_code=200, summary="Stop all keys of an account")
    async def suspend(
        self, account_id: AccountId, accounts: NamedDependency[Accounts], by: NamedDependency[Actor]
    ) -> Account:
        """Stop all keys of the account, within a second in every gateway."""
        return await accounts.suspend(account_id, by=by)

    @post("/{account_id:int}/resume", status_code=200, summary="Let a suspended account work again")
    async def resume(
        self, account_id: AccountId, accounts: NamedDependency[Accounts], by: NamedDependency[Actor]
    ) -> Account:
        """Let the keys of the account work again."""
        return await accounts.resume(account_id, by=by)
