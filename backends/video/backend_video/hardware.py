"""Hardware: the device of this machine on which FFmpeg decodes, by the parameter `hardware`.

    none              the CPU
    auto              a device that is there; the CPU without one, and for what it cannot decode
    cuda, cuda:1, …   this device; anything else is an error

Decoded frames are copied from the device to the memory of the machine.
"""

from __future__ import annotations

import contextlib
import functools
import logging

from av.codec.codec import Codec, UnknownCodecError
from av.codec.hwaccel import HWAccel
from av.error import FFmpegError

from core.errors import CoreError, invalid, unavailable

logger = logging.getLogger("core")

NONE, AUTO = "none", "auto"

# Decoders by FFmpeg's names: those that devices may help.
_CODECS = ("h264", "hevc", "av1", "vp8", "vp9", "mpeg2video", "mpeg4", "mjpeg", "vc1")


@functools.cache
def known() -> dict[str, str]:
    """Return the types of devices that decoders of this FFmpeg can use, each with one of these decoders.

    The devices need not be there.
    """
    found: dict[str, str] = {}
    for name in _CODECS:
        # FFmpeg may be built without a decoder, and know a device that PyAV does not.
        with contextlib.suppress(UnknownCodecError, ValueError):
            for each in Codec(name, "r").hardware_configs:
                if each.is_supported:
                    found.setdefault(each.device_type.name, name)
    return found


def is_known(text: str) -> bool:
    """Return whether a value of the parameter is one that this FFmpeg knows."""
    return text in (NONE, AUTO) or text.partition(":")[0] in known()


def expected() -> str:
    """Return what the parameter may be."""
    types = ", ".join(known())
    if not types:
        return f"{NONE} or {AUTO}: FFmpeg of this installation can use no devices"
    return f"{NONE}, {AUTO}, or a device that FFmpeg of this installation can use: {types}"


class Hardware:
    """A device. Thread-safe.

    name          such as cuda:1
    is_required   whether a video that it cannot decode is an error; else the CPU decodes that
    """

    def __init__(self, name: str, is_required: bool):
        self.name = name
        self.is_required = is_required
        self._held: HWAccel | None = None

    def open(self) -> None:
        """Keep the device open from now on. Raises FFmpegError, and ValueError for a wrong device number."""
        self._held = self._opened()

    def accelerator(self, shown: str) -> HWAccel | None:
        """Return what a container needs to decode on the device; None for the CPU, if that may decode.

        shown   name of the source in errors
        Raises CoreError(UNAVAILABLE) if the device is required, and cannot be opened any more.
        """
        try:
            self._opened()  # first, since a container would not say that this is what failed
        except (FFmpegError, ValueError) as error:
            if self.is_required:
                raise unavailable(
                    f"'{shown}': FFmpeg cannot open the device '{self.name}' any more: {_text(error)}"
                ) from None
            logger.warning(
                "video: the CPU decodes, because FFmpeg cannot open the device '%s' any more: %s",
                *(self.name, _text(error)),
            )
            return None
        return self._accelerator()

    def refused(self, shown: str) -> CoreError:
        """Return the error of a video that the device cannot decode."""
        return invalid(
            f"'{shown}' is no video that the device '{self.name}' decodes; with '{AUTO}' as the parameter "
            "'hardware' of config.pbtxt, the CPU decodes what the device cannot"
        )

    def _opened(self) -> HWAccel:
        decoder = known()[self.name.partition(":")[0]]
        return self._accelerator().create(Codec(decoder, "r"))

    def _accelerator(self) -> HWAccel:
        kind, _, device = self.name.partition(":")
        return HWAccel(
            kind,
            device or None,
            allow_software_fallback=not self.is_required,
            # One context for all streams of this process.
            options={"primary_ctx": "1"} if kind == "cuda" else None,
        )


def opened(model: str, text: str) -> Hardware | None:
    """Return the device that a value of the parameter means, open; None for the CPU.

    model   name of the model
    Raises CoreError(INVALID) for a device that cannot be opened.
    """
    if text == NONE:
        return None
    problems = []
    for name in known() if text == AUTO else (text,):
        device = Hardware(name, is_required=text != AUTO)
        try:
            device.open()
        except (FFmpegError, ValueError) as error:
            problems.append(f"{name}: {_text(error)}")
        else:
            logger.info("model '%s': FFmpeg decodes on the device '%s'", model, name)
            return device
    why = "; ".join(problems) or "FFmpeg of this installation can use none"
    if text == AUTO:
        logger.info("model '%s': the CPU decodes, as FFmpeg can open no device (%s)", model, why)
        return None
    raise invalid(
        f"model '{model}': parameter 'hardware' of config.pbtxt names a device that FFmpeg cannot open "
        f"({why}); install its driver, or write '{AUTO}' or '{NONE}'"
    )


def _text(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
