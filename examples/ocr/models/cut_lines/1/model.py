"""Pictures of the lines of a page: where the detector sees text, cut out of the page and turned upright."""

import cv2
import numpy as np
import triton_python_backend_utils as pb_utils

TEXT, LINE = 0.3, 0.5  # least probability of a pixel, and of the pixels of a line on average
GROW = 1.6  # the detector marks the core of a line: it grows by this share of its area / perimeter
SMALLEST = 3  # shorter side of a line, in pixels
HEIGHT, LEAST_WIDTH = 48, 320  # of the pictures of lines
MOST_PIXELS = (
    100_000  # widths of all lines of a page: 0.9 GB for the probabilities of their characters
)


class TritonPythonModel:
    def execute(self, requests):
        """Return FP32[n, 3, 48, w], INT32[n], FP32[n, 4, 2] and BOOL[1] for a page of n lines."""
        return [self.cut(request) for request in requests]

    def cut(self, request):
        text, geometry, page = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            for name in ("text", "geometry", "page")
        )
        boxes = in_reading_order(boxes_of(text[0], geometry))
        pictures = [upright(page, box) for box in boxes]
        widths = np.array([each.shape[1] for each in pictures], np.int32)
        width = max(LEAST_WIDTH, widths.max(initial=0))
        if len(widths) * width > MOST_PIXELS:
            refused = pb_utils.TritonError(
                f"{len(widths)} lines, the longest of {width} pixels, are more than {MOST_PIXELS} pixels: "
                "send the page in parts",
                pb_utils.TritonError.INVALID_ARG,
            )
            return pb_utils.InferenceResponse(error=refused)
        lines = np.zeros((len(widths), 3, HEIGHT, width), np.float32)
        for line, picture in zip(lines, pictures, strict=True):
            line[:, :, : picture.shape[1]] = picture.transpose(2, 0, 1) / np.float32(127.5) - 1
        outputs = {
            "lines": lines,
            "widths": widths,
            "boxes": boxes,
            "found": np.array([len(widths) > 0]),
        }
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, array) for name, array in outputs.items()]
        )


def boxes_of(text, geometry):
    """Return FP32[n, 4, 2]: corners in the page, clockwise from the first of the text.

    text       FP32[h, w], probabilities
    geometry   FP32[6]: width and height of the page, scale and place of the page in `text`
    """
    size, scale, place = geometry.reshape(3, 2)
    marked = cv2.dilate((text > TEXT).astype(np.uint8), np.ones((2, 2), np.uint8))
    boxes = []
    for outline in cv2.findContours(marked, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)[0]:
        centre, sides, angle = cv2.minAreaRect(outline)
        if min(sides) < SMALLEST or probability(text, cv2.boxPoints((centre, sides, angle))) < LINE:
            continue
        grown = np.add(sides, GROW * sides[0] * sides[1] / (sides[0] + sides[1]))
        corners = (clockwise(cv2.boxPoints((centre, grown, angle))) - place) / scale
        box = np.clip(np.round(corners), 0, size - 1)
        if np.ptp(box, axis=0).min() >= SMALLEST:
            boxes.append(box)
    return np.array(boxes, np.float32).reshape(-1, 4, 2)


def probability(text, corners):
    """Return the average of `text` between the corners, FP32[4, 2]."""
    corners = corners.astype(np.int32)
    left, top = np.maximum(corners.min(0), 0)
    right, bottom = corners.max(0) + 1
    part = text[top:bottom, left:right]
    inside = np.zeros(part.shape, np.uint8)
    cv2.fillPoly(inside, [corners - (left, top)], 1)
    return cv2.mean(part, inside)[0]


def clockwise(corners):
    """Return the corners from top left on, as one reads a line that is not turned by 90 degrees or more."""
    left, right = np.split(corners[np.argsort(corners[:, 0], kind="stable")], 2)
    (top_left, bottom_left), (top_right, bottom_right) = (
        side[np.argsort(side[:, 1], kind="stable")] for side in (left, right)
    )
    return np.array([top_left, top_right, bottom_right, bottom_left])


def in_reading_order(boxes):
    """Return the boxes row by row. A box at most half its height below another one is in its row."""
    boxes = boxes[np.argsort(boxes[:, 0, 1], kind="stable")]
    tops, heights = boxes[:, 0, 1], np.linalg.norm(boxes[:, 3] - boxes[:, 0], axis=1)
    rows = np.cumsum(np.diff(tops, prepend=tops[:1]) > heights / 2)
    return boxes[np.lexsort((boxes[:, 0, 0], rows))]


def upright(page, box):
    """Return the line between four corners as UINT8[48, width, 3]; a line of a column is turned."""
    sides = np.linalg.norm(box - np.roll(box, -1, axis=0), axis=1).astype(int)
    width, height = max(*sides[::2], 1), max(*sides[1::2], 1)
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    line = cv2.warpPerspective(
        page,
        cv2.getPerspectiveTransform(box, target),
        (int(width), int(height)),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    if height >= 1.5 * width:
        line = cv2.rotate(line, cv2.ROTATE_90_COUNTERCLOCKWISE)
    return cv2.resize(line, (-(-HEIGHT * line.shape[1] // line.shape[0]), HEIGHT))
