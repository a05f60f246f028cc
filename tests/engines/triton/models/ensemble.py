"""Runs inside Triton: what TensorRT-LLM's `ensemble` takes and gives, with words for tokens, and a diary.

The likeliest tokens are WORDS in their order. A prompt may ask for trouble: `end after 3`, `fail after 2`.
"""

import json
import random
import re
import threading
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

WORDS = ["gate", "fare", "lane", "tram", "line", "card", "zone", "ride", "seat", "rail"]
LONGEST = 2000
TENSORS = threading.Lock()
"""Held while tensors are made, sent or read: Triton 2.51 counts references to them without Python's lock."""


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        told = {name: each["string_value"] for name, each in config["parameters"].items()}
        self.delay_s = float(told["delay_s"])
        self.diary = Path(told["diary"])
        self.inputs = [each["name"] for each in config["input"]]
        self.outputs = {each["name"] for each in config["output"]}
        self.streams = config.get("model_transaction_policy", {}).get("decoupled", False)

    def write(self, request_id, event, **more):
        with self.diary.open("a") as file:
            file.write(json.dumps({"id": request_id, "event": event} | more) + "\n")

    def execute(self, requests):
        if not self.streams:
            return [self.whole(request) for request in requests]
        for request in requests:
            given = self.read(request)
            sender = request.get_response_sender()
            threading.Thread(target=self.stream, args=(request.request_id(), given, sender), daemon=True).start()
        return None

    def read(self, request):
        found = {}
        with TENSORS:
            for name in self.inputs:
                tensor = pb_utils.get_input_tensor_by_name(request, name)
                if tensor is not None:
                    values = tensor.as_numpy().reshape(-1).tolist()
                    found[name] = [each.decode() if isinstance(each, bytes) else each for each in values]
                del tensor
        self.write(request.request_id(), "begun", inputs=found)
        return found

    def tokens(self, given):
        prompt, limit = given["text_input"][0], given["max_tokens"][0]
        sampled = given.get("top_k", [0])[0] != 1 and ("top_p" in given or "top_k" in given)
        seed = given.get("seed") or given.get("random_seed")
        chance = random.Random(seed[0] if seed else None)
        end = re.search(r"end after (\d+)", prompt)
        if end and given.get("end_id") != [-1]:
            limit = min(limit, int(end[1]))
        fail = re.search(r"fail after (\d+)", prompt)
        for index in range(limit):
            if fail and index == int(fail[1]):
                raise ValueError(f"no more at {prompt}")
            word = chance.choice(WORDS) if sampled else WORDS[index % len(WORDS)]
            yield " " + word
            if word in [stop.strip() for stop in given.get("stop_words", [])]:
                return

    def response(self, given, text, tokens):
        values = {
            "text_output": np.array([text.encode()], dtype=np.object_),
            "cum_log_probs": np.array([0.0], dtype=np.float32),
            "sequence_index": np.array([[0]], dtype=np.int32),
        }
        if given.get("return_num_input_tokens") == [True]:
            values["num_input_tokens"] = np.array([[len(given["text_input"][0].split())]], dtype=np.int32)
            values["num_output_tokens"] = np.array([[tokens]], dtype=np.int32)
        made = [pb_utils.Tensor(name, value) for name, value in values.items() if name in self.outputs]
        return pb_utils.InferenceResponse(output_tensors=made)

    def whole(self, request):
        given = self.read(request)
        made = list(self.tokens(given))
        return self.response(given, "".join(made), len(made))

    def stream(self, request_id, given, sender):
        if len(given["text_input"][0].split()) > LONGEST:
            error = pb_utils.TritonError(f"Prompt length (99999) exceeds maximum input length ({LONGEST}). /a/path")
            sender.send(pb_utils.InferenceResponse(error=error))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            return
        count = 0
        try:
            for count, token in enumerate(self.tokens(given), 1):
                if sender.is_cancelled():
                    self.write(request_id, "cancelled", tokens=count - 1)
                    break
                with TENSORS:
                    sender.send(self.response(given, token, 1))
                time.sleep(self.delay_s)
            else:
                self.write(request_id, "done", tokens=count)
        except ValueError as error:
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error))))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
