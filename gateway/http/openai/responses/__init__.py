"""OpenAI's Responses: another form of a chat, for SDKs that speak it. Nothing is remembered between calls.

bodies.py    what a call holds
turns.py     its items as the messages of a chat
family.py    the endpoint
objects.py   an answer as a response object
stream.py    an answer as the events of a stream
"""
