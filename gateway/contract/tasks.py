"""The tasks a model may do, and the input each of them takes."""

from typing import Literal, get_args

Task = Literal["chat", "completion", "embedding", "text-to-speech"]
"""What a model does."""

TASKS: tuple[Task, ...] = get_args(Task)
