"""The programs of the example and its plugin, which need not be installed.

They are last on the path, because some of their names are common.
"""

import sys
from pathlib import Path

VIDEO = Path(__file__).parents[1]
sys.path += [str(VIDEO), str(VIDEO / "watch")]
