"""Price maps of others made into catalog entries: exactly, or not at all.

    entry.py        what is read of a model, and what could not be said of its price
    figures.py      JSON whose numbers stay decimals
    litellm.py      LiteLLM's model_prices_and_context_window.json
    openrouter.py   OpenRouter's /api/v1/models
    write.py        entries as a catalog file

No figure passes through a float, and none is dropped in silence: what our price rows have no unit for stands in a
comment beside the price, and is told to whoever imports.
"""
