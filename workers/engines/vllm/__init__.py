"""The engine of text models, on vLLM in process.

`engine.py` is what a worker sees; `prompting.py` makes prompts, `sampling.py` the drawing of tokens,
`formats.py` the constraints of an answer, `tools.py` and `scanner.py` read tool calls, `answer.py` puts
the output together, `embedding.py` makes vectors. `adapter.py` is the only file that calls vLLM; it is
imported when a model is loaded, behind `environment.py`.
"""
