"""Messages as clients of TensorFlow Serving make them."""

from frontend_tfserving.rpc import messages
from frontend_tfserving.types import NUMBERS


def tensor(dtype, shape, **values):
    proto = messages.TensorProto(dtype=NUMBERS[dtype].number, **values)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


def spec(name, **fields):
    return messages.ModelSpec(name=name, **fields)


def features(**values):
    example = messages.Example()
    for name, value in values.items():
        kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}[type(value[0])]
        getattr(example.features.feature[name], kind).value.extend(value)
    return example


def examples(*found):
    return messages.Input(example_list=messages.ExampleList(examples=found))
