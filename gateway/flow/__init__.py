"""The way of a request, one file a step; each step takes the result of the step before it.

    call.py           what a caller asked, parsed by one API family
    authenticate.py   whose key it is
    resolve.py        which model is meant, and whether its input fits
    quote.py          the most it can cost
    route.py          where it will run, refused while that queue is full
    admit.py          the hold, in Postgres: nothing runs before it has committed
    enqueue.py        into the pool's queue
    follow.py         what its worker says, joined with the settler's word that it is charged
    respond.py        what may be told the caller, and with which error

`way.py` walks these steps for the gateways, `watch.py` reads requests again later, and `resend.py`
puts back what Redis has lost while a caller waits. Two steps run in the settler, whichever gateway
accepted the request:

    settle.py         terminal events become charges, exactly once
    sweep.py          expired leases, lost requests and passed deadlines
"""
