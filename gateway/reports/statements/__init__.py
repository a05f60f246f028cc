"""Statements: what an account began a month with, what came and went, what it ended with. One truth, four forms.

month.py       a month in a time zone, as an address names it
records.py     Statement and its parts: whole numbers of nanos, and what sums to what
charges.py     what was charged, by model and price version: units times price, and what is left of rounding
read.py        Statements(engine): reads one from the ledger and the usage rows, in one snapshot
shown.py       how amounts and quantities read, the same in HTML and PDF
tables.py      CSV
pdf.py         PDF by typst (statement.typ; extra `reports`)
"""
