"""How long tests wait before they fail; CORE_PATIENCE_S changes it, for models that load slowly."""

from __future__ import annotations

import os

PATIENCE_S = float(os.environ.get("CORE_PATIENCE_S") or 60)  # of one call, in seconds
