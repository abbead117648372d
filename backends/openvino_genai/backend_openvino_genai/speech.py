"""SpeechEngine: the engine of Whisper, which transcribes speech.

Speech ─► [SpeechEngine] ─► WhisperPipeline ─► Transcript
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openvino_genai
from core_generate import Engine, Segment, Speech, Transcript
from core_generate.sound import RATE

from backend_openvino_genai.loading import check_device, reason, thread_properties
from backend_openvino_genai.settings import Settings
from core.errors import cancelled, internal, invalid

_ENGLISH = "en"  # the only language of a model that is not multilingual
_BLOCK_S = 30  # seconds that Whisper reads at once


class SpeechEngine(Engine):
    """Transcribes with OpenVINO GenAI's WhisperPipeline, one sound at a time.

    device   the OpenVINO device
    """

    def __init__(self, path: Path, settings: Settings):
        check_device(settings.device)
        self.device = settings.device
        self.supports = settings.supports
        # The pipeline keeps the tensors of one call.
        self._lock = threading.Lock()
        try:
            self._pipeline = openvino_genai.WhisperPipeline(
                str(path), settings.device, **thread_properties(settings)
            )
        except Exception as error:
            raise internal(f"OpenVINO GenAI cannot load '{path}': {reason(error)}") from None
        told = self._pipeline.get_generation_config()
        self._multilingual = bool(told.is_multilingual)
        self._languages = {each.strip("<|>") for each in told.lang_to_id} or {_ENGLISH}

    def transcribe(self, speech: Speech, stopped: Callable[[], bool]) -> Transcript:
        config = self._config(speech)
        seconds = len(speech.samples) / RATE
        # The pipeline asks between the tokens of sounds of one block without times only.
        short = seconds <= _BLOCK_S and not speech.times
        with self._lock:
            if stopped():
                raise cancelled()
            try:
                if short:
                    found = self._pipeline.generate(speech.samples, config, lambda text: stopped())
                else:
                    found = self._pipeline.generate(speech.samples, config)
            except RuntimeError as error:
                raise internal(f"OpenVINO GenAI cannot transcribe: {reason(error)}") from None
        if stopped():
            raise cancelled()
        segments = [_segment(each, seconds) for each in found.chunks or ()] if speech.times else ()
        language = str(found.language or "").strip("<|>") if self._multilingual else _ENGLISH
        return Transcript(str(found.texts[0]).strip(), language, tuple(segments))

    def _config(self, speech: Speech) -> Any:
        """Return the pipeline's settings for a sound. Raises CoreError(INVALID) for an unknown language."""
        config = self._pipeline.get_generation_config()
        config.return_timestamps = speech.times
        language = speech.language.lower()
        if language and language not in self._languages:
            raise invalid(
                f"the input 'language' is '{speech.language[:50]}', the model has "
                f"{', '.join(sorted(self._languages))}"
            )
        if self._multilingual:
            config.task = "transcribe"
            if language:
                config.language = f"<|{language}|>"
        if speech.prompt:
            config.initial_prompt = speech.prompt
        if speech.temperature is not None:
            config.do_sample = speech.temperature > 0
            config.temperature = speech.temperature or 1.0
        return config

    def cache_bytes(self) -> int:
        """Return 0: the cache of one sound is small, and not reported."""
        return 0


def _segment(chunk: Any, seconds: float) -> Segment:
    """Return the segment of a chunk. Where Whisper has found no end, it is that of the sound."""
    start = max(0.0, float(chunk.start_ts))
    end = float(chunk.end_ts)
    return Segment(start, end if end >= start else seconds, str(chunk.text))
