-- Every price version, with what its model's other outcomes cost as the catalog says today.
select p.id, p.model_id, p.components, p.valid_from, m.spec -> 'outcome' as outcome
from price_version p join model m on m.id = p.model_id
