"""A real Triton server for tests, made by deploy/triton.py."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from tritonclient.grpc import InferenceServerClient
from tritonclient.utils import InferenceServerException

from gateway.stack.ports import free_port
from tests.engines.triton.repository import write_repository

START_S = 90.0
ANSWER_S = 10.0
LOADED_LATER = {"whole", "left_alone"}
"""Models that the server does not load by itself: one that a test loads, and one that none does."""


class TritonServer:
    """A server with the test models, or some of them, on a port of its own that it keeps when it is started again."""

    def __init__(self, program: Path, folder: Path, only: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.url = f"127.0.0.1:{self.port}"
        self.diary_file = folder / "diary.jsonl"
        self.diary_file.touch()
        known = write_repository(folder / "models", self.diary_file)
        self.models = only or [name for name in known if name not in LOADED_LATER]
        self._prefix = f"faregate-{self.port}-"
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it and its models are ready."""
        command = [
            str(self._program),
            f"--model-repository={self._folder / 'models'}",
            "--grpc-address=127.0.0.1",
            f"--grpc-port={self.port}",
            "--allow-http=false",
            "--allow-metrics=false",
            "--model-control-mode=explicit",
            "--exit-timeout-secs=2",
            f"--backend-config=python,shm-region-prefix-name={self._prefix}",
            *(f"--load-model={name}" for name in self.models),
        ]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        if wait:
            self.await_ready()

    def await_ready(self) -> None:
        """Wait until the server and its models are ready."""
        assert self._process is not None
        end = time.monotonic() + START_S
        with InferenceServerClient(self.url) as client:
            while time.monotonic() < end:
                assert self._process.poll() is None, (self._folder / "server.log").read_text()[-3000:]
                try:
                    if client.is_server_ready() and all(client.is_model_ready(name) for name in self.models):
                        return
                except (InferenceServerException, grpc.RpcError):
                    pass
                time.sleep(0.1)
        raise AssertionError((self._folder / "server.log").read_text()[-3000:])

    def revive(self) -> None:
        """Start it again where it has crashed or hangs, which Triton at times does on a loaded machine; say so."""
        if self._answers():
            return
        log = (self._folder / "server.log").read_text()[-3000:]
        print(f"The Triton server was gone (exit {self._process and self._process.poll()}); its last words:\n{log}")
        self.kill()
        self.start()

    def _answers(self) -> bool:
        """Say whether the server runs and answers within a few seconds."""
        if self._process is None or self._process.poll() is not None:
            return False
        try:
            with InferenceServerClient(self.url) as client:
                return bool(client.is_server_ready(client_timeout=ANSWER_S))
        except (InferenceServerException, grpc.RpcError):
            return False

    def kill(self) -> None:
        """Kill it, with the processes of its models, and remove the memory that they shared."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        for shared in Path("/dev/shm").glob(f"{self._prefix}*"):
            shared.unlink(missing_ok=True)

    def diary(self, request_id: str = "") -> list[dict[str, Any]]:
        """Read what the models wrote down of a request."""
        lines = [json.loads(line) for line in self.diary_file.read_text().splitlines()]
        return [line for line in lines if line["id"].startswith(request_id)]

    def statistics(self, model: str) -> int:
        """Count a model's inferences that have succeeded."""
        with InferenceServerClient(self.url) as client:
            (stats,) = client.get_inference_statistics(model).model_stats
            return int(stats.inference_count)
