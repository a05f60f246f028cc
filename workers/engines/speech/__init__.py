"""The engine `speech`: speech, cloned voices and music are made, and speech is understood.

`engine.py` is what a worker sees. `families.py` finds the family that serves a model, each a file of its own: `espeak`
(with `library.py`, espeak-ng through ctypes, and `voices.py`), and on torch `vits`, `speecht5`, `waveform`, `musicgen`
and `whisper`; `torched.py` is what those share. `job.py` is one request with its clock, `sound.py` decodes what callers
send, `speaking.py` cuts texts into pieces, `track.py` turns samples into a file by `encoders.py`, `transcript.py` turns
tokens into segments and words, and `options.py` is what a catalog may say.
"""
