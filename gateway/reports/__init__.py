"""What was used, what it cost and what is left: read only, one definition per number.

    scope.py        Scope (whose, what), Question, Sums (requests, errors, charge, cost, margin, units, p50, p95), Group
    figures.py      Figures(engine): totals, compared, series (hour or day, top five and Other), table (rows and
                    the whole range's footer), movers, refunded, groups (any question). Over rollups, within a second
    ranges.py       Range: whole hours, UTC
    latency.py      buckets and percentiles
    pieces.py, compose.py, asking.py   which table answers what, the statement, how it is asked
    movers.py, series.py               what Figures answers with
    request_filter.py, request_list.py, request_story.py   finished requests: found by filters, and one of them whole
    exports/        requests as CSV, JSON, JSON lines, Parquet, streamed
    statements/     a month of an account, in four forms
    usage.py, query.py, table.py, answers.py, csv_text.py   the usage reports of the APIs, over the same figures

Figures raise TookTooLong (gateway/db/reading.py) past their time; pages show that on the card that asked.
"""
