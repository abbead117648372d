"""ObjectDetector: boxes with their labels and scores."""

from ts.labels import map_class_to_label
from ts.timing import timed
from ts.torch_handler.vision_handler import VisionHandler, to_tensor


class ObjectDetector(VisionHandler):
    image_processing = staticmethod(to_tensor)
    threshold = 0.5

    @timed
    def postprocess(self, data):
        return [self._boxes(row) for row in data]

    def _boxes(self, row):
        kept = row["scores"] >= self.threshold
        boxes, labels, scores = (row[key][kept].tolist() for key in ("boxes", "labels", "scores"))
        return [
            {**map_class_to_label([[box]], self.mapping, [[label]])[0], "score": score}
            for box, label, score in zip(boxes, labels, scores)
        ]
