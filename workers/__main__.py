"""Start a worker: `python -m workers --pool NAME`."""

import sys

# structlog loads rich where it is installed, for colours: 7 MB in each process, whose logs are JSON.
sys.modules["rich"] = None  # type: ignore[assignment]
import structlog  # noqa: E402, F401

del sys.modules["rich"]  # an engine may want it

from workers.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
