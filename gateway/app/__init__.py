"""The gateway process, wired: the only place where its parts meet.

parts.py    Parts(settings): everything it is made of
rooms.py    the admin API and the dialects of other clouds, with what they are given
site.py     the dashboard and the owners' pages, made when the first page is asked for
running.py  what goes on beside the calls
create.py   create_app(settings): routes, and the application
"""
