"""Backtests: past usage rated again under a draft of a price, in Postgres, where it lies.

formula.py    a price written as SQL, exact to the nano: it equals `gateway.pricing.rate`, which a property test proves
statement.py  the one statement that a chunk of usage is rated by
past.py       which usage a draft is about, chunk by chunk, and the sums of it
jobs.py       backtests as they lie in Postgres: begun, followed, cancelled
runner.py     works them off, in the settler: it is there whatever gateways come and go, and has nothing to answer

Nothing of it computes in Python but the adding up of sums: a chunk is one read of a second or less that locks nothing
and that Postgres ends by itself when it takes longer; the process that waits for it serves on meanwhile.
"""
