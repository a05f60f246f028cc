"""The OpenAI family: the wire shapes that openai-python and everything built on it expect."""
