"""EfficientNet-Lite0 of PyTorch as a tf.Module: the same weights, the same operations."""

from __future__ import annotations

import tensorflow as tf
import torch


class Network(tf.Module):
    """pixels FP32[n, 3, 224, 224] → logits FP32[n, 1000], as the network of PyTorch that it is made from."""

    def __init__(self, network: torch.nn.Module):
        super().__init__()
        self.stem = Convolution(network._conv_stem, network._bn0)
        self.blocks = [Block(each) for each in network._blocks]
        self.head = Convolution(network._conv_head, network._bn1)
        self.weights = variable(network._fc.weight.T)
        self.bias = variable(network._fc.bias)

    @tf.function(input_signature=[tf.TensorSpec([None, 3, 224, 224], tf.float32, "pixels")])
    def logits(self, pixels: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.nn.relu6(self.stem(tf.transpose(pixels, [0, 2, 3, 1])))
        for block in self.blocks:
            x = block(x)
        x = tf.reduce_mean(tf.nn.relu6(self.head(x)), [1, 2])
        return {"logits": tf.matmul(x, self.weights) + self.bias}


class Block(tf.Module):
    """More channels, a convolution of each, fewer channels. The input is added if it has the same shape."""

    def __init__(self, block: torch.nn.Module):
        super().__init__()
        wider = hasattr(block, "_expand_conv")
        self.expand = Convolution(block._expand_conv, block._bn0) if wider else None
        self.depthwise = Convolution(block._depthwise_conv, block._bn1)
        self.project = Convolution(block._project_conv, block._bn2)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        wide = x if self.expand is None else tf.nn.relu6(self.expand(x))
        found = self.project(tf.nn.relu6(self.depthwise(wide)))
        return found + x if found.shape[1:] == x.shape[1:] else found


class Convolution(tf.Module):
    """A convolution without bias whose batch normalisation is in its weights, in NHWC."""

    def __init__(self, convolution: torch.nn.Conv2d, normalisation: torch.nn.BatchNorm2d):
        super().__init__()
        scale = normalisation.weight / torch.sqrt(normalisation.running_var + normalisation.eps)
        weights = convolution.weight * scale[:, None, None, None]
        self.each_channel = convolution.groups > 1
        # out, in, height, width → height, width, in, out; or, in a convolution of each channel, out, in.
        self.weights = variable(
            weights.permute((2, 3, 0, 1) if self.each_channel else (2, 3, 1, 0))
        )
        self.bias = variable(normalisation.bias - normalisation.running_mean * scale)
        self.stride = convolution.stride[0]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        convolve = tf.nn.depthwise_conv2d if self.each_channel else tf.nn.conv2d
        strides = [1, self.stride, self.stride, 1]
        return convolve(x, self.weights, strides, "SAME") + self.bias


def variable(tensor: torch.Tensor) -> tf.Variable:
    return tf.Variable(tensor.detach().numpy(), trainable=False)
