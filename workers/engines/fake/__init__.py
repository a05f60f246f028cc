"""The deterministic engine `fake`: the same words for everyone, at a set pace, with faults on demand.

`options.py` says what a model may set, `conduct.py` what a prompt may ask for, `script.py` what is
answered, `pacer.py` when; `engine.py` puts them together.
"""
