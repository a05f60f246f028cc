"""The engine `speech`: real speech by espeak-ng, encoded by FFmpeg, streamed as it is synthesised.

`library.py` is espeak-ng through ctypes, `voices.py` what may be asked for, `encoders.py` the formats,
`job.py` one request in its thread, `engine.py` the engine.
"""
