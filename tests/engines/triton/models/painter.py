"""Runs inside Triton: an image of one colour, which is the seed's, drawn in steps; as pixels and as planes."""

import json
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

STEP_S = 0.005


def value(request, name):
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy().reshape(-1).tolist()[0]


class TritonPythonModel:
    def initialize(self, args):
        self.diary = Path(json.loads(args["model_config"])["parameters"]["diary"]["string_value"])

    def write(self, **event):
        with self.diary.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def execute(self, requests):
        return [self.paint(request) for request in requests]

    def paint(self, request):
        prompt, steps = value(request, "PROMPT").decode(), value(request, "STEPS")
        if "fail" in prompt:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("out of paint"))
        negative = value(request, "NEGATIVE")
        self.write(id=request.request_id(), event="begun", prompt=prompt, negative=negative and negative.decode())
        for step in range(steps):
            if request.is_cancelled():
                self.write(id=request.request_id(), event="cancelled", steps=step)
                return pb_utils.InferenceResponse(
                    error=pb_utils.TritonError("cancelled", pb_utils.TritonError.CANCELLED)
                )
            time.sleep(STEP_S)
        side = 4 if "small" in prompt else 1
        height, width = value(request, "HEIGHT") // side, value(request, "WIDTH") // side
        colour = np.random.default_rng(value(request, "SEED")).integers(0, 256, 3)
        pixels = np.broadcast_to(colour, (height, width, 3)).astype(np.uint8)
        planes = np.moveaxis(pixels, -1, 0).astype(np.float32) / 127.5 - 1
        self.write(id=request.request_id(), event="done", steps=steps)
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("IMAGE", np.ascontiguousarray(pixels)),
                pb_utils.Tensor("PLANES", np.ascontiguousarray(planes)),
                pb_utils.Tensor("STEPS_RUN", np.array([steps], dtype=np.int32)),
            ]
        )
