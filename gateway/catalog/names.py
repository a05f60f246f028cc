"""The names of pools, upstreams, models and parameters: their forms, and each but once."""

import re

import msgspec

from gateway.catalog.problems import Report, shown


class NameForm(msgspec.Struct, frozen=True):
    """What a name looks like, how long it may be, and how that is said."""

    pattern: re.Pattern[str]
    most: int
    words: str

    def fits(self, name: str) -> bool:
        """Say whether a name has this form."""
        return len(name) <= self.most and bool(self.pattern.fullmatch(name)) and ".." not in name

    def check(self, report: Report, line: int, name: str, field: str) -> None:
        """Report a name that has not this form."""
        if not self.fits(name):
            report.add(line, field, f"a name of at most {self.most} {self.words}", shown(name))


MODEL_NAME = NameForm(
    re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]*(/[A-Za-z0-9][A-Za-z0-9._:@-]*)*"), 128, "letters, digits and `._:@-/`"
)
ALIAS_NAME = NameForm(
    re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]*([/ ][A-Za-z0-9][A-Za-z0-9._:@-]*)*"),
    128,
    "letters, digits, `._:@-/` and single spaces",
)
"""Other names of a model; people write some of them with spaces, such as `Llama 2 70B`."""
POOL_NAME = NameForm(re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"), 63, "lower-case letters, digits and `-`")
UPSTREAM_NAME = POOL_NAME
LIST_NAME = POOL_NAME
PARAMETER_NAME = NameForm(re.compile(r"[A-Za-z][A-Za-z0-9_]*"), 64, "letters, digits and `_`")
