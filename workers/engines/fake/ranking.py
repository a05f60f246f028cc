"""How the fake engine ranks: by a rule that a test can work out by hand."""

from gateway.contract.events import RankingOutput
from gateway.contract.inputs import RerankInput
from workers.engine import Run


def rank(run: Run, given: RerankInput) -> RankingOutput:
    """Rank documents by the share of the query's words that they hold; among equals the first comes first."""
    run.began()
    with run.phases.timed("forward"):
        query = given.query.lower().split()
        held = [set(document.lower().split()) for document in given.documents]
        shares = [sum(word in words for word in query) / max(1, len(query)) for words in held]
        best = sorted(range(len(shares)), key=lambda at: -shares[at])
    run.units.input_tokens = len(query) + sum(len(document.split()) for document in given.documents)
    return RankingOutput([(at, shares[at]) for at in best[: given.top_n]])
