"""Embedded Postgres and Valkey, and the supervisor behind `faregate up`.

launch.py      becomes a child: drops root, dies with its parent
identity.py    who Postgres runs as, since it refuses to run as root
children.py    what a child is, and how it is spawned and stopped
postgres.py    PostgreSQL from its wheel
valkey.py      Valkey from its wheel
"""
