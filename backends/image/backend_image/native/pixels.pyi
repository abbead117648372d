import numpy as np

def look_up(pixels: np.ndarray, tables: np.ndarray, out: np.ndarray) -> None:
    """Write the value of each pixel in the table of its channel to `out`.

    pixels   UINT8[height, width, channels] of any layout
    tables   [channels, 256] of UINT8, UINT16 or UINT32 in native byte order, contiguous
    out      [channels, height, width] of that datatype, of any layout

    Releases the GIL from 65536 pixels on. Raises ValueError if shapes, datatypes, layouts or byte orders do
    not fit, and TypeError for tables of another datatype.
    """
