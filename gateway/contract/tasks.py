"""The tasks a model may do, and the input each of them takes."""

from typing import Literal, get_args

Task = Literal["chat", "completion", "embedding", "text-to-speech"]
"""What a model does. Stored as its position in `TASKS`: append, never reorder."""

TASKS: tuple[Task, ...] = get_args(Task)
