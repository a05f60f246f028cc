"""Money that comes in: `POST /payments/{provider}`, signed by the provider, booked as a top-up exactly once.

signature.py  timestamp and HMAC, as Stripe writes them; the generic provider signs in the same way
generic.py    the event of a provider of your own
stripe.py     the events of Stripe
routes.py     the door
"""
