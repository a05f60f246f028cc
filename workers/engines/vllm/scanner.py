"""Reads the JSON list of tool calls that `tool_choice: required` forces, while it is being written."""

import json

_KEY, _COLON, _NAME, _ARGUMENTS, _OTHER, _AFTER = range(6)


class CallScanner:
    """Follows `[{"name": ..., "parameters": ...}, ...]`; each character is looked at once.

    `feed` answers `(index, name, arguments)`: the name once, as soon as it is whole, and the arguments
    as they grow.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._awaits = _KEY
        self._word = ""  # the key or the name being written
        self._named = False

    def feed(self, text: str) -> list[tuple[int, str | None, str]]:
        """Take new text, and answer what it adds to the calls."""
        found: list[tuple[int, str | None, str]] = []
        arguments = ""
        for sign in text:
            awaited = self._awaits
            if self._step(sign):
                arguments += sign
            if self._named:
                self._named = False
                found.append((self.calls - 1, json.loads(self._word), ""))
            if awaited == _ARGUMENTS != self._awaits and arguments:
                found.append((self.calls - 1, None, arguments))
                arguments = ""
        if arguments:
            found.append((self.calls - 1, None, arguments))
        return found

    def _step(self, sign: str) -> bool:
        """Go one character further; answer whether it belongs to the arguments of a call."""
        if self._quoted:
            return self._within_quotes(sign)
        if sign == '"':
            self._quoted = True
            self._word = '"'
            return self._awaits == _ARGUMENTS
        if sign in "{[":
            self._depth += 1
            if self._depth == 2:
                self._awaits = _KEY
                return False
            return self._awaits == _ARGUMENTS
        if sign in "}]":
            self._depth -= 1
            if self._depth == 1:
                self._awaits = _KEY
                return False
            return self._awaits == _ARGUMENTS
        return self._between(sign)

    def _within_quotes(self, sign: str) -> bool:
        self._word += sign
        if self._escaped:
            self._escaped = False
        elif sign == "\\":
            self._escaped = True
        elif sign == '"':
            self._quoted = False
            if self._depth == 2:
                self._end_of_word()
        return self._awaits == _ARGUMENTS

    def _end_of_word(self) -> None:
        if self._awaits == _KEY:
            self._awaits = _COLON
        elif self._awaits == _NAME:
            self.calls += 1
            self._named = True
            self._awaits = _AFTER

    def _between(self, sign: str) -> bool:
        if self._depth != 2:
            return self._awaits == _ARGUMENTS
        if sign == ":" and self._awaits == _COLON:
            self._awaits = {'"name"': _NAME, '"parameters"': _ARGUMENTS}.get(self._word, _OTHER)
            return False
        if sign == ",":
            self._awaits = _KEY
            return False
        return self._awaits == _ARGUMENTS and not sign.isspace()
