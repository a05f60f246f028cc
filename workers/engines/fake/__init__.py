"""The deterministic engine `fake`: the same words and media for everyone, at a set pace, with faults on demand.

`options.py` says what a model may set, `conduct.py` what a prompt may ask for, `script.py` what is
answered, `pacer.py` when; `media.py` lists who makes which media (`pictures.py`, `films.py`, `sounds.py`,
`hearing.py`), in the steps of `steps.py`; `engine.py` puts them together.
"""
