"""The tokenizer of a model: its tokens and its chat template, from a folder or a Hugging Face repository.

No code of a repository is run. A chat template is a program in Jinja, kept in a sandbox.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from huggingface_hub import snapshot_download
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer as FastTokenizer

from workers.engine import RefusedInput
from workers.engines.triton.options import BadModel

FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class Tokenizer:
    """Counts and makes tokens. Blocks for as long as a text is long: in a thread, where it may be long."""

    def __init__(self, folder: Path) -> None:
        """Read a folder. Raises BadModel."""
        try:
            self._fast: Any = FastTokenizer.from_file(str(folder / FILES[0]))
            self.config = _read_json(folder / FILES[1])
        except Exception as error:
            if not isinstance(error, OSError | ValueError) and type(error) is not Exception:  # what tokenizers raises
                raise
            raise BadModel(f"the tokenizer cannot be read: {type(error).__name__}") from None
        self._fast.no_truncation()
        self._fast.no_padding()
        named = folder / FILES[2]
        template = named.read_text() if named.is_file() else self.config.get("chat_template")
        self.template = template if isinstance(template, str) else ""
        """Its chat template; empty where it has none."""
        pad = self._fast.token_to_id(token_text(self.config.get("pad_token")))
        self.pad_id: int = 0 if pad is None else pad

    def ids(self, text: str, *, special: bool = True) -> list[int]:
        """Make the tokens of a text, with those that go around each text where `special` says so."""
        ids: list[int] = self._fast.encode(text, add_special_tokens=special).ids
        return ids


def find_tokenizer(source: str, models_dir: Path) -> Tokenizer:
    """Read the tokenizer that `source` names, fetched where it is a repository; blocks. Raises BadModel."""
    for folder in (Path(source), models_dir / source):
        if (folder / FILES[0]).is_file():
            return Tokenizer(folder)
    if not _REPOSITORY.fullmatch(source):
        raise BadModel(f"source {source!r} is neither a folder with a tokenizer.json nor a repository (owner/name)")
    try:
        return Tokenizer(Path(snapshot_download(source, allow_patterns=list(FILES))))
    except (OSError, ValueError) as error:
        raise BadModel(f"the tokenizer of {source} cannot be fetched: {type(error).__name__}") from None


class ChatTemplate:
    """Makes one prompt of a conversation."""

    def __init__(self, template: str, tokens: Mapping[str, Any]) -> None:
        """Compile a template. Raises BadModel."""
        jinja = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        jinja.filters["tojson"] = _to_json
        jinja.globals["raise_exception"] = _refuse
        try:
            self._template = jinja.from_string(template)
        except jinja2.TemplateError as error:
            raise BadModel(f"the chat template does not compile: {error}") from None
        self._tokens = {name: token_text(tokens.get(name)) for name in ("bos_token", "eos_token")}

    def prompt(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Make the prompt. Raises RefusedInput where the template does not take these messages."""
        try:
            return self._template.render(messages=messages, add_generation_prompt=True, **self._tokens)
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            said = str(error)[:200] if isinstance(error, _Refused) else "its chat template fails"
            raise RefusedInput(f"This model does not take this conversation: {said}") from None


class _Refused(jinja2.TemplateError):
    """A template calls `raise_exception`."""


def _refuse(message: object) -> NoReturn:
    raise _Refused(str(message))


def token_text(token: object) -> str:
    """Read a special token as a configuration writes it: a text, or an object with `content`."""
    content = token.get("content", "") if isinstance(token, dict) else token
    return content if isinstance(content, str) else ""


def _to_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _read_json(path: Path) -> dict[str, Any]:
    read = json.loads(path.read_text()) if path.is_file() else {}
    return read if isinstance(read, dict) else {}
