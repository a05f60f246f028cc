"""The engine of text models, on vLLM in process.

`engine.py` is what a worker sees; `options.py` what a catalog may say, `serving.py` what one process serves,
`devices.py` which GPUs it takes. `prompting.py` makes prompts, `sampling.py` the drawing of tokens, `formats.py` the
constraints of an answer, `tools.py` and `scanner.py` read tool calls, `answer.py` puts the output together,
`embedding.py` makes vectors, `ranking.py` orders documents. Only `adapter/` calls vLLM; it is imported when a model is
loaded, behind `environment.py`.
"""
