"""The engine of models that a Triton inference server runs.

`engine.py` is what a worker sees, `options.py` what a catalog may say, `readiness.py` how a model is awaited and
watched. `text.py` runs chat and completion on TensorRT-LLM's `ensemble`, with `sampling.py`, `prompting.py`,
`answer.py` and `stops.py`; `vectors.py` and `images.py` run models that take tensors and give tensors. `tensors.py`
makes and reads tensors, `connection.py` is the only file that speaks gRPC.
"""
