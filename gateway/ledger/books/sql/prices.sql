-- Every price version, with what other outcomes than success cost under it; where an older release wrote it, as its model says.
select p.id, p.model_id, p.components, p.valid_from, p.minimum_nanos, coalesce(p.outcome, m.spec -> 'outcome') as outcome
from price_version p join model m on m.id = p.model_id
