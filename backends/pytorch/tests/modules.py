"""Small modules; TorchScript needs their source in a file."""

from typing import Dict, List, Optional, Tuple  # noqa: UP035 - TorchScript knows these

import torch
from torch import Tensor, nn


class Sum(nn.Module):
    """(x, y) → x + y, x - y"""

    def forward(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        return x + y, x - y


class Receiver(nn.Module):
    """(x, self) → x - self: its methods call the module `this`, and an argument `self`."""

    def forward(this, x: Tensor, self: Tensor) -> Tensor:
        return x - self


class Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Pick(nn.Module):
    """y = 2x, picked = the element at `index` of each row; raises out of range."""

    def forward(self, x: Tensor, index: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        return x * 2, torch.gather(x, 1, index)


class Flat(nn.Module):
    """Flatten all rows to one."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1)


class Keyed(nn.Module):
    def forward(self, given: Dict[str, Tensor]) -> Dict[str, Tensor]:  # noqa: UP006
        return {"difference": given["a"] - given["b"], "sum": given["a"] + given["b"]}


class Upper(nn.Module):
    """Return text in capitals, and joined with its length."""

    def forward(self, words: List[str]) -> Tuple[List[str], Tensor]:  # noqa: UP006
        capitals: List[str] = []  # noqa: UP006
        lengths: List[int] = []  # noqa: UP006
        for word in words:
            capitals.append(word.upper())
            lengths.append(len(word))
        return capitals, torch.tensor(lengths, dtype=torch.int64)


class Echo(nn.Module):
    def forward(self, words: List[str]) -> List[str]:  # noqa: UP006
        return words


class Listed(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:  # noqa: UP006
        return [x + 1, x + 2]


class Scaled(nn.Module):
    def forward(self, x: Tensor, factor: Optional[Tensor] = None, power: int = 1) -> Tensor:  # noqa: UP045
        if factor is None:
            return x * 10
        return x * factor


class Counter(nn.Module):
    """Counts its runs, in a buffer that it returns each time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.runs.add_(1)
        return self.runs


class Attribute(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(1)

    def forward(self, x: Tensor) -> Tensor:
        found = x + self.last.sum()
        self.last = x
        return found


class InPlace(nn.Module):
    """Writes to its input."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.view(-1)
        flat[0:1].add_(100)
        return x * 1


class Weight(nn.Module):
    """Returns its weight, which has a gradient, and numbers with a pending negation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        return self.weight, torch.imag(torch.conj(torch.complex(x, x)))


class Total(nn.Module):
    """Return a scalar."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


class Number(nn.Module):
    def forward(self, x: Tensor) -> int:
        return x.size(0)


class Adding(nn.Module):
    """Adds x to the state of a sequence."""

    def forward(self, x: Tensor, total: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        found = x + total
        return found, found


class Described(nn.Module):
    """Return 2x, where x has the elements of all requests in one row, and `about` as a column."""

    def forward(self, x: Tensor, about: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        return x * 2, about.unsqueeze(1)


class Nested(nn.Module):
    def forward(self, x: Tensor, more: Dict[str, Tensor], scale: Tensor):  # noqa: UP006
        return {"y": x * 2, "z": [more["a"] + 1, more["b"] * scale]}


class Convolutions(nn.Module):
    """The layers of most vision models."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten()
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Trained(nn.Module):
    """Dropout, which has an effect in training only."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x)


def _plus_one(module: nn.Module, given: Tuple[Tensor], found: Tensor) -> Tensor:  # noqa: UP006
    return found + 1


class Hooked(nn.Module):
    """y = x + 1, by a hook that is saved with it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(_plus_one)

    def forward(self, x: Tensor) -> Tensor:
        return x


class Named(nn.Module):
    """Take a tensor and return a dict."""

    def forward(self, x: Tensor) -> Dict[str, Tensor]:  # noqa: UP006
        return {"half": x / 2, "twice": x * 2}


class NoForward(nn.Module):
    @torch.jit.export
    def predict(self, x: Tensor) -> Tensor:
        return x


class Before(nn.Module):
    """Return the state of a sequence as it was, without a copy, and add x to it."""

    def forward(self, x: Tensor, total: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        return total, x + total


class Appending(nn.Module):
    """Append x to the state of a sequence, and return the sum of all."""

    def forward(self, x: Tensor, all: Tensor) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        found = torch.cat([all, x], 1)
        return found.sum(1, keepdim=True), found


class Turning(nn.Module):
    """Exchange two states of a sequence, and return the first. x sets the second."""

    def forward(self, x: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor, Tensor]:  # noqa: UP006
        return a * 1, b + x, a
