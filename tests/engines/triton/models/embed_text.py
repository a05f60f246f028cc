"""Runs inside Triton: texts to vectors. A text that says `fail` fails."""

import hashlib

import numpy as np
import triton_python_backend_utils as pb_utils


def vector(text):
    return np.frombuffer(hashlib.sha256(text).digest(), dtype=np.uint8)[:8].astype(np.float32) / 255


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1).tolist()
        if b"fail" in texts:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("no vector for fail"))
        tokens = np.array([[len(text.split())] for text in texts], dtype=np.int32)
        vectors = np.stack([vector(text) for text in texts])
        return pb_utils.InferenceResponse(
            output_tensors=[pb_utils.Tensor("VECTOR", vectors), pb_utils.Tensor("TOKENS", tokens)]
        )
