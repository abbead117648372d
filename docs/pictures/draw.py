"""Draw the pictures of the pages: python docs/pictures/draw.py [FOLDER]

Writes request.svg, batching.svg and states.svg. The pictures have no background; their colours can be read on
white and on black pages.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

BLUE, GREEN, ORANGE, RED = "#4a5fc9", "#12806a", "#b3560f", "#b83a4b"
GREY = "#78818c"  # lines, and text beside boxes
FONT = "font-family='system-ui, sans-serif'"


class Drawing:
    """An SVG of a fixed size, in pixels; its elements in the order of drawing."""

    def __init__(self, width: int, height: int, title: str):
        self._size = width, height
        self._title = title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, lines: str, fill: str) -> None:
        """Draw a filled box with centred white text; `lines` are separated by line breaks."""
        self._parts.append(
            f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='6' fill='{fill}'/>"
        )
        rows = lines.split("\n")
        top = y + height / 2 - (len(rows) - 1) * 8
        for index, row in enumerate(rows):
            size, weight = (14, 600) if index == 0 else (12, 400)
            self._text(x + width / 2, top + 16 * index + 5, row, "#fff", "middle", size, weight)

    def label(self, x: float, y: float, text: str, anchor: str = "middle", size: int = 13) -> None:
        self._text(x, y, text, GREY, anchor, size, 500)

    def line(self, *points: tuple[float, float], arrow: bool = True, dashed: bool = False) -> None:
        path = " ".join(f"{x},{y}" for x, y in points)
        end = " marker-end='url(#arrow)'" if arrow else ""
        gaps = " stroke-dasharray='4 4'" if dashed else ""
        self._parts.append(
            f"<polyline points='{path}' fill='none' stroke='{GREY}' stroke-width='1.6'{gaps}{end}/>"
        )

    def bracket(self, left: float, right: float, y: float, text: str) -> None:
        """Draw a bracket below boxes, and its text."""
        self.line((left, y - 8), (left, y), (right, y), (right, y - 8), arrow=False)
        self.label((left + right) / 2, y + 18, text)

    def text(self) -> str:
        width, height = self._size
        parts = "\n".join(self._parts)
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
            f"width='{width}' height='{height}' role='img' {FONT}>\n"
            f"<title>{escape(self._title)}</title>\n"
            "<defs><marker id='arrow' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' "
            "markerHeight='7' orient='auto-start-reverse'>"
            f"<path d='M0,0 L10,5 L0,10 z' fill='{GREY}'/></marker></defs>\n"
            f"{parts}\n</svg>\n"
        )

    def _text(
        self, x: float, y: float, text: str, fill: str, anchor: str, size: int, weight: int
    ) -> None:
        self._parts.append(
            f"<text x='{x:g}' y='{y:g}' fill='{fill}' text-anchor='{anchor}' "
            f"font-size='{size}' font-weight='{weight}'>{escape(text)}</text>"
        )


def request() -> Drawing:
    """Return the path of a request: from the bytes of the client to the bytes of the answer."""
    drawing = Drawing(900, 290, "The path of a request through the server")
    there = [
        ("Frontend", "HTTP or gRPC\nbytes → tensors", BLUE),
        ("Admission", "names, datatypes,\nshapes, limits", BLUE),
        ("Cache, layers", "if the model\nuses them", BLUE),
        ("Queue", "priorities,\ndeadlines", BLUE),
        ("Batcher", "rows of several\nrequests", BLUE),
    ]
    width, gap, top = 132, 22, 40
    for index, (name, text, fill) in enumerate(there):
        x = 90 + index * (width + gap)
        drawing.box(x, top, width, 72, f"{name}\n{text}", fill)
        drawing.line((x - gap, top + 36), (x - 1, top + 36))
    drawing.label(34, top + 40, "client")
    right = 90 + 4 * (width + gap) + width
    drawing.box(right - width, 170, width, 72, "Instance\nthe backend\nexecutes the batch", GREEN)
    drawing.line((right - width / 2, top + 72), (right - width / 2, 169))
    back = [
        ("Split", "each request gets\nits own rows"),
        ("Frontend", "tensors → bytes\nof the protocol"),
    ]
    x = right - width
    for name, text in back:
        drawing.line((x, 206), (x - gap + 1, 206))
        x -= width + gap
        drawing.box(x, 170, width, 72, f"{name}\n{text}", BLUE)
    drawing.line((x, 206), (62, 206))
    drawing.label(34, 210, "client")
    drawing.label((90 + right) / 2, 24, "event loop")
    drawing.bracket(x, right - width - gap, 258, "event loop")
    drawing.bracket(right - width, right, 258, "thread of the instance")
    return drawing


def batching() -> Drawing:
    """Return how requests that arrive together share an execution."""
    drawing = Drawing(960, 320, "Dynamic batching over time")
    left, scale = 150, 76  # pixels of a millisecond
    rows = {"requests arrive": 30, "wait in the queue": 96, "one instance runs": 190}
    for name, y in rows.items():
        drawing.label(10, y + 22, name, "start")
    # Name, when it arrives, when its batch starts, its row in the picture of the queue.
    requests = [("A", 0.0, 0.5, 0), ("B", 0.9, 3.0, 0), ("C", 1.5, 3.0, 1), ("D", 2.1, 3.0, 2),
                ("E", 6.5, 7.1, 0), ("F", 6.9, 7.1, 1)]  # fmt: skip
    for name, arrives, starts, level in requests:
        x = left + arrives * scale
        drawing.box(x, rows["requests arrive"], 26, 34, name, BLUE)
        drawing.box(x, 96 + level * 20, (starts - arrives) * scale - 3, 16, "", ORANGE)
    batches = [(0.5, 3.0, "A", "1 row"), (3.0, 6.2, "B C D", "3 rows in one execution"),
               (7.1, 9.8, "E F", "2 rows in one execution")]  # fmt: skip
    for starts, ends, names, text in batches:
        x = left + starts * scale
        drawing.box(
            x, rows["one instance runs"], (ends - starts) * scale - 4, 46, f"{names}\n{text}", GREEN
        )
    drawing.label(left + 3.1 * scale, 116, "busy: requests gather", "start", 12)
    drawing.label(left + 7.2 * scale, 106, "free: the oldest waits at most", "start", 12)
    drawing.label(left + 7.2 * scale, 122, "max_queue_delay for others", "start", 12)
    drawing.line((left, 262), (left + 10.2 * scale, 262))
    for millisecond in range(0, 11, 2):
        drawing.label(left + millisecond * scale, 282, f"{millisecond} ms", size=12)
    return drawing


def states() -> Drawing:
    """Return the states of a model version, as the repository index shows them."""
    drawing = Drawing(960, 280, "The states of a model version")
    boxes = [
        (190, 40, BLUE, "LOADING\nfiles, backend,\ninstances, warmup"),
        (440, 40, GREEN, "READY\nserves requests"),
        (710, 40, ORANGE, "UNLOADING\nfinishes its requests"),
        (440, 180, RED, "UNAVAILABLE\nthe index has the reason"),
    ]
    for x, y, fill, text in boxes:
        drawing.box(x, y, 170, 70, text, fill)
    drawing.line((40, 75), (189, 75))
    drawing.label(110, 64, "start, load, poll")
    drawing.line((360, 75), (439, 75))
    drawing.label(398, 64, "success")
    drawing.line((610, 75), (709, 75))
    drawing.label(658, 64, "unload, or")
    drawing.label(658, 96, "replaced")
    drawing.line((300, 110), (300, 200), (439, 200))
    drawing.label(310, 160, "failure", "start")
    drawing.line((795, 110), (795, 215), (611, 215))
    drawing.label(785, 160, "last request done", "end")
    drawing.line((440, 234), (230, 234), (230, 111))
    drawing.label(335, 254, "load again")
    return drawing


PICTURES = {"request": request, "batching": batching, "states": states}


def main(folder: Path) -> None:
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw().text())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
