"""GMI's request queue: the wire shapes that clients of that platform expect.

bodies.py       what is posted
views.py        how requests and models are shown
queue.py        models and requests
uploads.py      files, put at a signed address
sign_in.py      e-mail and password, for the vendor's own package
"""
