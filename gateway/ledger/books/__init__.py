"""The books: the thirteen invariants of money, checked against Postgres in one snapshot, or day by day.

figures.py      what a check says, and the report of all
statements.py   every check that is one SQL file: its statement, and what its two figures are
sql/            those files; each answers one row a check: left, right, how many are broken, which
rating.py       I3 by its hardest meaning: every usage row rated again at its pinned price version
outputs.py      I10 in the blob folder: kept media and whose attempt they are
queue.py        I12 beside Redis: open requests that it has lost
window.py       the days that are gone through row by row, each in a snapshot of its own
verify.py       all of it in order
runs.py         what was found, kept, and what somebody asked for
keeper.py       verifies by the clock and when asked, in one settler at a time
"""
