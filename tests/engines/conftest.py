"""Tests of vLLM are not even imported where it is not installed: its packages come with it."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("vllm") else ["test_vllm_*.py", "test_tiny.py"]
