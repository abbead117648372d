"""VisionHandler: images in requests, as bytes, base64 or nested lists; and their preparation with pillow."""

import base64
import io

import numpy as np
import torch
from PIL import Image

from ts.timing import timed
from ts.torch_handler.base_handler import BaseHandler

_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
_DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class VisionHandler(BaseHandler):
    def initialize(self, context):
        super().initialize(context)
        if not context.system_properties.get("limit_max_image_pixels"):
            Image.MAX_IMAGE_PIXELS = None

    @timed
    def preprocess(self, data):
        return torch.stack([self._tensor(row) for row in data]).to(self.device)

    def _tensor(self, row):
        image = row.get("data") or row.get("body")
        if isinstance(image, str):
            image = base64.b64decode(image)
        if isinstance(image, (bytes, bytearray)):
            return self.image_processing(Image.open(io.BytesIO(image)))
        return torch.FloatTensor(image)


def to_tensor(image):
    """Return an image of 8 bits as FP32 [channels, height, width] between 0 and 1."""
    array = np.array(image, np.uint8)
    array = array[:, :, np.newaxis] if array.ndim == 2 else array
    return torch.from_numpy(array).permute(2, 0, 1).contiguous().float().div(255)


def prepare(image, short=256, side=224):
    """Scale an image so that its shorter side has `short` pixels, cut out the middle, normalise it.

    Pixel for pixel what torchvision's Resize, CenterCrop, ToTensor and Normalize do for ImageNet.
    """
    width, height = image.size
    upright = width <= height
    size = (short, int(short * height / width)) if upright else (int(short * width / height), short)
    image = image if size == image.size else image.resize(size, Image.Resampling.BILINEAR)
    left = round((size[0] - side) / 2.0)
    top = round((size[1] - side) / 2.0)
    image = image.crop((left, top, left + side, top + side))
    return (to_tensor(image) - _MEAN) / _DEVIATION
