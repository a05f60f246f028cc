"""The one statement by which a chunk of usage is rated: it answers sums for each account and key."""

from collections.abc import Mapping, Sequence

import msgspec

from gateway.contract.units import UNIT_NAMES
from gateway.money import MAX_NANOS
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent
from gateway.reports.backtest.formula import MODES, Binds, attos, grains, minimum_attos, mode, nanos, rounded


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A price as it is rated: components, minimum, and what outcomes cost."""

    components: tuple[PriceComponent, ...]
    minimum_nanos: int = 0
    outcome: OutcomePolicy = OutcomePolicy()

    @property
    def looks_at(self) -> frozenset[str]:
        """The traits that its conditions look at."""
        return frozenset(condition.parameter for part in self.components for condition in part.when)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How past usage is rated again."""

    draft: Rule | None = None
    """At this price; None rates each row at the version that is pinned to it."""
    pinned: Mapping[int, Rule] = {}
    """Price versions by their ids."""
    discount_ppm: int | None = None
    """With this discount; None leaves each row its own."""


_TRAITS = "coalesce(terms -> 'others' -> price_version_id::text, terms -> 'traits')"
_OWN_PPM = "coalesce((terms ->> 'discount_ppm')::bigint, 0)"
_RATED = MODES["produced"]


def chunk_statement(source: str, rules: Rules, accounts: str) -> tuple[str, list[object]]:
    """Write the statement for usage rows of one `source` (a column) and the arguments that the rules add.

    $1 value of the source  $2 after this id  $3 up to this one  $4 finished from  $5 finished before  $6 accounts:
    `accounts` is the condition on them. Answers one row for each account and key.
    """
    binds = Binds(None, None, None, None, None, None)
    ppm = _OWN_PPM if rules.discount_ppm is None else str(int(rules.discount_ppm))
    price, minimum, rule = _price(rules, binds)
    lacks = _lacks(rules, binds)
    quick = grains(rules.draft.components, rules.draft.minimum_nanos, binds) if rules.draft is not None else None
    fits = "false" if quick is None else f"({ppm} = 0 and {quick.fits})"
    text = f"""
select account_id, api_key_id, count(*) as requests,
  coalesce(sum(charge_nanos) filter (where charge is not null), 0) as before_nanos,
  coalesce(sum(least(charge, hold_nanos)) filter (where charge is not null), 0) as after_nanos,
  count(*) filter (where charge > hold_nanos) as capped,
  coalesce(sum(charge - hold_nanos) filter (where charge > hold_nanos), 0) as capped_nanos,
  count(*) filter (where charge is null and lacks) as unrated,
  coalesce(sum(charge_nanos) filter (where charge is null and lacks), 0) as unrated_nanos,
  count(*) filter (where charge is null and not lacks) as unsold,
  coalesce(sum(charge_nanos) filter (where charge is null and not lacks), 0) as unsold_nanos,
  coalesce(sum(cost_nanos) filter (where charge is not null), 0) as cost_nanos,
  count(*) filter (where charge is not null and cost_nanos is null) as uncosted
from (
  select account_id, api_key_id, hold_nanos, charge_nanos, cost_nanos, lacks,
    case rule when {MODES["nothing"]} then 0 when {MODES["full"]} then hold_nanos
      else case when lacks then null when fits then {quick.nanos if quick else "0"}
        when nearest > {MAX_NANOS} then {MAX_NANOS} else {rounded("exact", "nearest")}::bigint end end as charge
  from (
    select *, round(exact) as nearest from (
      select *, {nanos(ppm)} as exact from (
        select *, case when not fits then {price} end as attos, {minimum} as minimum,
          case when fits then {quick.total if quick else "0"} end as grains, {rule} as rule,
          case when {rule} = {_RATED} then {lacks} else false end as lacks
        from (
          select *, {fits} as fits from (
          select {", ".join(UNIT_NAMES)}, account_id, api_key_id, hold_nanos, charge_nanos, cost_nanos, outcome,
            price_version_id, terms, {_TRAITS} as traits,
            case when outcome = 0 or forward_began then 1 else 0 end as began
          from usage
          where {source} = $1 and id > $2 and id <= $3 and finished_at >= $4 and finished_at < $5 and {accounts}
          ) as used
          offset 0
        ) as sorted
        offset 0  -- keeps the planner from writing each sum once for each use of it
      ) as summed
      offset 0
    ) as priced
    offset 0
  ) as near
  offset 0
) as rated
group by account_id, api_key_id"""
    return text, binds.values[6:]


def _price(rules: Rules, binds: Binds) -> tuple[str, str, str]:
    """Write the price of a row, its minimum, and by which rule its outcome is charged."""
    draft, pinned = rules.draft, rules.pinned
    if draft is not None:
        return attos(draft.components, binds), minimum_attos(draft.minimum_nanos), mode(draft.outcome)
    if not pinned:
        return "null::numeric", minimum_attos(0), str(_RATED)
    prices = _by_version({version: attos(rule.components, binds) for version, rule in pinned.items()})
    minima = _by_version({version: minimum_attos(rule.minimum_nanos) for version, rule in pinned.items()})
    modes = _by_version({version: mode(rule.outcome) for version, rule in pinned.items()}, str(_RATED))
    return prices, minima, modes


def _by_version(texts: Mapping[int, str], otherwise: str = "null") -> str:
    cases = [f"when {int(version)} then {text}" for version, text in texts.items()]
    return f"(case price_version_id {' '.join(cases)} else {otherwise} end)"


def _lacks(rules: Rules, binds: Binds) -> str:
    """Write whether a row cannot tell what a condition of the draft looks at.

    It can where it has the trait, and where its own price looked at the trait: then it was left out by its caller.
    """
    if rules.draft is None:
        return "false"
    tests = []
    for name in sorted(rules.draft.looks_at):
        knew: Sequence[int] = [version for version, rule in rules.pinned.items() if name in rule.looks_at]
        known = binds.add(list(knew), "integer[]")
        tests.append(f"(traits -> {binds.add(name, 'text')} is null and price_version_id <> all({known}))")
    return f"({' or '.join(tests)})" if tests else "false"
