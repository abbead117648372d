"""ImageClassifier: the most probable classes of an image."""

import torch

from ts.labels import map_class_to_label
from ts.timing import timed
from ts.torch_handler.vision_handler import VisionHandler, prepare


class ImageClassifier(VisionHandler):
    topk = 5
    image_processing = staticmethod(prepare)

    def set_max_result_classes(self, topk):
        self.topk = topk

    def get_max_result_classes(self):
        return self.topk

    @timed
    def postprocess(self, data):
        values, classes = torch.topk(torch.nn.functional.softmax(data, dim=1), self.topk, dim=1)
        return map_class_to_label(values.tolist(), self.mapping, classes.tolist())
