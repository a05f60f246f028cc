"""Reads tool calls by vLLM's parsers, each of which knows how a family of models writes them."""

from collections.abc import Sequence
from typing import Any

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager

from workers.engines.vllm.shapes import Piece


def parser_class(name: str, where: str, tokenizer: Any) -> Any:
    """Find a parser by its name. Raises KeyError and what vLLM raises for one that does not fit the tokenizer."""
    return ParserManager.get_parser(
        tool_parser_name=name, enable_auto_tools=True, model_name=where, tokenizer=tokenizer
    )


def tool_reader(kind: Any, llm: Any, tools: list[dict[str, Any]]) -> "ToolReader":
    """Make a reader of the calls of these tools."""
    request = ChatCompletionRequest(messages=[], model="", tools=tools, tool_choice="auto")
    parser = kind(llm.get_tokenizer(), request.tools, model_config=llm.model_config)
    return ToolReader(parser, parser.adjust_request(request))


class ToolReader:
    """Reads one choice by the parser of vLLM that knows how the model writes tool calls."""

    def __init__(self, parser: Any, request: Any) -> None:
        self.called = False
        self.keep_special = not request.skip_special_tokens
        self._parser = parser
        self._request = request
        self._began = False

    def read(self, text: str, ids: Sequence[int], *, finished: bool) -> Piece:
        """Tell text from calls; the whole answer at once, or as it comes."""
        whole, self._began = finished and not self._began, True
        if whole:
            _, content, found = self._parser.parse(text, self._request, True, ids)
            calls = [(index, call.name, call.arguments) for index, call in enumerate(found or ())]
            self.called = bool(calls)
            return Piece(text=content or "", calls=calls)
        delta = self._parser.parse_delta(text, list(ids), self._request, [], finished=finished)
        if delta is None:
            return Piece()
        self.called |= bool(delta.tool_calls)
        parts = [(call.index, call.function) for call in delta.tool_calls if call.function is not None]
        pieces = [(index, part.name, part.arguments or "") for index, part in parts]
        return Piece(text=delta.content or "", calls=pieces)
