"""The way of a request, one file a step; each step takes the result of the step before it.

    call.py           what a caller asked, parsed by one API family; wish.py, what it leaves to us
    authenticate.py   whose key it is
    resolve.py        which model is meant, and whether its input fits
    stage.py          its media, looked at and in the blob store
    quote.py          the most it can cost
    route.py          where it will run, and where else it may; refused while those queues are full
    reach.py          whether it can end before its caller's own deadline
    admit.py          the hold, in Postgres: nothing runs before it has committed
    enqueue.py        into the pool's queue
    follow.py         what its worker says, joined with the settler's word that it is charged
    respond.py        what may be told the caller, and with which error

Where a caller leaves a choice, `choose.py` takes resolve, stage and quote for each of the models that may answer
(`rivals.py` finds them, `pick.py` says which is best), and the others travel with the request as its legs.

`way.py` walks these steps for the gateways, `watch.py` reads requests again later (as `view.py` shows them),
`shelf.py` lists and throws away what is kept of some tasks, and `resend.py` puts back what Redis has lost
while a caller waits. Three steps run in the settler, whichever gateway
accepted the request:

    hand_over.py      what failed in one pool goes on in the next
    settle.py         terminal events become charges, exactly once
    sweep.py          expired leases, lost requests and passed deadlines
    chronicle.py      how fast each pool serves, told to the gateways once a second
"""
