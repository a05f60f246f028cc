"""Signing in by an OpenID Connect provider: authorization code with PKCE, state, nonce, and algorithms named here.

`provider.py` asks the provider and checks its tokens, `members.py` says who has which role, `routes.py` leads there
and back.
"""
