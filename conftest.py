"""For tests of all folders: one of hypothesis fails by what it finds, not by the time of a busy machine."""

import contextlib

with contextlib.suppress(ImportError):  # some distributions are tested without hypothesis
    from hypothesis import settings

    settings.register_profile("any machine", deadline=None)
    settings.load_profile("any machine")
