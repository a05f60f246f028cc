"""Replicate's HTTP API: the wire shapes that its clients expect.

bodies.py        what is posted
names.py         models as `owner/name`, and versions
views.py         how requests and models are shown
predictions.py   requests
stream.py        a request as server-sent events
models.py        models, deployments, versions, and the account
files.py         files
secret.py        what webhooks are signed with
webhook.py       what receivers of webhooks are told
"""
