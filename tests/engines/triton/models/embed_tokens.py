"""Runs inside Triton: tokens to the vectors of tokens `[id, 1, size of the batch]`; where the mask is 0, nonsense."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        ids = pb_utils.get_input_tensor_by_name(request, "input_ids").as_numpy()
        mask = pb_utils.get_input_tensor_by_name(request, "attention_mask").as_numpy()
        ones = np.ones_like(ids)
        made = np.stack([ids, ones, ones * len(ids)], axis=-1).astype(np.float32)
        made[mask == 0] = 1e6
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("last_hidden_state", made)])
