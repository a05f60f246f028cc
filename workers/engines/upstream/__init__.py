"""The engine `upstream`: requests that a provider elsewhere executes.

A request's way through it:

    engine.py        the engine: a request's targets in turn, until one has answered
    routing.py       the order of the targets: wishes of the caller, order, weight, failures
    provider.py      one upstream as a worker holds it: how it is spoken to, its slots, its health
    health.py        what recent traffic says: error rate, latency, circuit breaker, retry budget
    attempt.py       one attempt at one target, and what is recorded of it
    jobs.py notes.py a job elsewhere: its id is noted before it is waited for, so that nobody buys it twice
    counting.py      the units of an output; tokens are estimated where an upstream tells none
    failures.py      what goes wrong, as reasons; what an upstream says of it is cleaned before it is shown

Protocols, one file for each, and what they share:

    protocol.py      what a protocol is
    protocols/       openai, gmi, fal, replicate, elevenlabs, minimax, kling
    fields.py        an input as the fields that an upstream takes: by allow-list
    attached.py      the caller's files on their way to an upstream
    media.py results.py   results copied from an upstream, under limits, from public addresses only
    verdicts.py transcripts.py waves.py   failure words, transcripts and bare samples that several protocols read

HTTP:

    link.py          the way to one upstream: key, limits, timeouts, errors
    answer.py sse.py what comes back: whole, or as it comes
    transport.py connection.py   HTTP/1.1 below httpx, with connections that are kept
"""
