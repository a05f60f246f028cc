"""Find a Chromium for the tests of the dashboard and its pictures, or install Debian's.

    python3 deploy/browser.py

prints its path. An environment variable CHROMIUM names another one.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
INSTALL_S = 600


class NoBrowser(Exception):
    """There is none, and none can be installed here; the message says why in one line."""


def find() -> Path | None:
    """Give the path of the Chromium that is there; None where there is none."""
    told = os.environ.get("CHROMIUM")
    found = told or next((path for name in NAMES if (path := shutil.which(name))), None)
    return Path(found) if found else None


def make() -> Path:
    """Give the path of a Chromium, installed from Debian's packages where none is there. Raises NoBrowser."""
    found = find()
    if found is not None:
        return found
    apt = shutil.which("apt-get")
    if apt is None:
        raise NoBrowser("no Chromium is installed, and this is no Debian: install one, or name it by CHROMIUM")
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        try:
            done = subprocess.run(
                [*prefix, apt, "-q", *step], capture_output=True, text=True, timeout=INSTALL_S, check=False, env=environ
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoBrowser(f"Chromium cannot be installed here: {error}") from None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise NoBrowser(f"Chromium cannot be installed here: {said[-1] if said else step[0]}")
    found = find()
    if found is None:
        raise NoBrowser("apt-get installed a Chromium that is not on the PATH")
    return found


if __name__ == "__main__":
    try:
        print(make())
    except NoBrowser as reason:
        sys.exit(f"faregate: {reason}")
