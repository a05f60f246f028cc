"""The fal family: its queue, its synchronous calls and its storage, over the same requests as every other family.

door.py       which handler a path means
names.py      which model a path means
fields.py     fal's fields for the inputs of our tasks, one table a task
sizes.py      fal's words for sizes
calls.py      from a body to a call
submit.py     the queue: accepted, and looked at later
repeats.py    a submit that is sent again because its answer was never read
run.py        the synchronous host: waited for, or streamed
standing.py   status, result and cancel
storage.py    uploads
views.py      how a request and its output are shown
errors.py     how an error is shown
webhook.py    how a webhook tells it
"""
