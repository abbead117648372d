"""The ensemble read_page in Python. It recognises lines of like length together: few pixels are empty."""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils

LEAST_WIDTH = 320  # of a line, in pixels


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.most_pixels = int(parameters["most_pixels"]["string_value"])

    async def execute(self, requests):
        """BYTES[1] → BYTES[n], FP32[n], FP32[n, 4, 2] for each request, all at once."""
        return await asyncio.gather(*(self.answered(request) for request in requests))

    async def answered(self, request):
        try:
            image = pb_utils.get_input_tensor_by_name(request, "image").as_numpy()
            lines, widths, boxes = await lines_of(image)
            texts, scores = np.empty(len(lines), object), np.empty(len(lines), np.float32)
            groups = grouped(widths, self.most_pixels)
            read = await asyncio.gather(*(read_group(lines, widths, group) for group in groups))
        except Refused as refused:
            return pb_utils.InferenceResponse(error=refused.error)
        for group, found in zip(groups, read, strict=True):
            texts[group], scores[group] = found
        outputs = {"texts": texts, "scores": scores, "boxes": boxes}
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, array) for name, array in outputs.items()]
        )


async def lines_of(image):
    """Return lines FP32[n, 3, 48, w], widths INT32[n] and boxes FP32[n, 4, 2] of a file, BYTES[1]."""
    (page,) = await called("decode_page", ["pixels"], image=image[None])
    pixels, geometry = await called("prepare_page", ["pixels", "geometry"], image=page)
    (text,) = await called("find_text", ["fetch_name_0"], x=pixels)
    return await called(
        "cut_lines", ["lines", "widths", "boxes"], text=text[0], geometry=geometry[0], page=page[0]
    )


def grouped(widths, most_pixels):
    """Return groups of indices: of like width, `most_pixels` wide together unless one line is wider."""
    groups = []
    for index in np.argsort(widths, kind="stable"):
        # The lines of a group get the width of its longest one: this one.
        if groups and (len(groups[-1]) + 1) * padded(widths[index]) <= most_pixels:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def padded(width):
    return max(LEAST_WIDTH, int(width))


async def read_group(lines, widths, group):
    """Return texts BYTES[n] and scores FP32[n] of a group of lines, which are recognised together."""
    pictures = lines[group, ..., : padded(widths[group].max())]
    (probabilities,) = await called("recognise_lines", ["fetch_name_0"], x=pictures)
    return await called(
        "spell_lines", ["texts", "scores"], probabilities=probabilities, widths=widths[group]
    )


class Refused(Exception):
    """Another model has answered with an error. It is the answer of this model, too."""

    def __init__(self, error):
        super().__init__(error.message())
        self.error = error


async def called(model, outputs, **inputs):
    """Return the outputs of another model, in order. Raises Refused with its error."""
    request = pb_utils.InferenceRequest(
        model_name=model,
        requested_output_names=outputs,
        inputs=[pb_utils.Tensor(name, array) for name, array in inputs.items()],
    )
    response = await request.async_exec()
    if response.has_error():
        raise Refused(response.error())
    return [pb_utils.get_output_tensor_by_name(response, name).as_numpy() for name in outputs]
