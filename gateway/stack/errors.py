"""What keeps the stack from starting."""


class StackError(Exception):
    """The stack cannot start or go on. The message is one line that says what to do."""


class NotInstalled(StackError):
    """A service's wheel is not there, or has no program for this machine."""
