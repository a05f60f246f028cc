"""A probe: answers, over its socket, what the files it is handed are. Started by `pool.py`, and ended by it."""

import socket
import sys

from gateway.media.probe import cell
from gateway.media.probe.findings import examine

if __name__ == "__main__":
    cell.serve(socket.socket(fileno=int(sys.argv[1])), examine)
