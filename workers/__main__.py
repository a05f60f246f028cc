"""Start a worker: `python -m workers --pool NAME`."""

from workers.cli import main

if __name__ == "__main__":
    main()
