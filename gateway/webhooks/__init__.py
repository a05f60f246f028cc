"""Webhooks: the outbox that settlement fills, its sender, and what signs what is sent.

    events.py       what is told, and by which id
    secrets.py      what an account's webhooks are signed with
    public_keys.py  pairs of keys of the whole system, of which everybody may read one half
    signing.py      the headers that each family's receivers verify
    message.py      a body, and how it is to be signed
    signature.py    the headers of the Standard Webhooks specification
    outbox.py       the sender's side of the outbox: lease, record, forget
    deliveries.py   the owner's side: what was told, every try, telling it again
    hosts.py        one receiver's trouble is nobody else's
    sender.py       sends what is due
    running.py      notes that open requests have started and how far they are
    forget.py       forgets what was told long ago
    schedule.py     when it is tried again

Settlement writes `completed` in its own transaction (ledger/sql/settle.sql), so no end goes untold.
"""
