"""The protocol `openai`: OpenAI's API, as it and many others serve it (source: OpenAI API reference).

wire.py        which task is done how, and what answers mean
bodies.py      a conversation, tools and formats as they are sent
shapes.py      what comes back, read leniently
usage.py       tokens and cost that an answer names, or an estimate
text.py        chat and completions, whole
streams.py     chat and completions as they come
vectors.py     embeddings and rankings
pictures.py    images, drawn and edited
sounds.py      speech and transcripts
films.py       videos, which are jobs
"""
