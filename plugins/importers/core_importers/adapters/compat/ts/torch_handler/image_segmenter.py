"""ImageSegmenter: class and probability of each pixel."""

import torch

from ts.timing import timed
from ts.torch_handler.vision_handler import VisionHandler, prepare


class ImageSegmenter(VisionHandler):
    image_processing = staticmethod(prepare)

    @timed
    def postprocess(self, data):
        best = torch.nn.functional.softmax(data["out"], dim=1).max(dim=1)
        return torch.stack([best.indices.type(best.values.dtype), best.values], dim=3).tolist()
