"""Tiny models made from code: real architectures, a real tokenizer, random weights.

They exist so that the real engines run on a machine that has no weights and no network. What they
answer is noise; every folder says so in its README and in its `config.json`.
"""
