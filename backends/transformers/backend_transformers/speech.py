"""SpeechEngine: transcripts of speech, by Whisper.

Speech ─► [SpeechEngine] ─► AutomaticSpeechRecognitionPipeline ─► Transcript
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import torch
import transformers
from core_generate import Engine, Segment, Speech, Status, Transcript
from core_generate.sound import RATE

from backend_transformers.folder import Folder
from backend_transformers.generation import failed
from backend_transformers.loading import Loaded
from backend_transformers.settings import Settings
from core.errors import CoreError, cancelled, invalid

_ENGLISH = "en"  # the only language of a model that is not multilingual


class SpeechEngine(Engine):
    """Transcribes one sound at a time, on a thread of its own.

    bytes   size of the weights
    """

    def __init__(self, loaded: Loaded, settings: Settings, folder: Folder):
        self.most = settings.slots
        self.supports = settings.supports
        self.bytes = loaded.bytes
        self._model = loaded.module
        path = str(folder.path)
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
        self._pipeline = transformers.AutomaticSpeechRecognitionPipeline(
            model=loaded.module,
            tokenizer=self._tokenizer,
            feature_extractor=transformers.AutoFeatureExtractor.from_pretrained(
                path, local_files_only=True
            ),
            device=loaded.module.device,
        )
        told = loaded.module.generation_config
        self._multilingual = bool(getattr(told, "is_multilingual", False))
        self._languages = {
            each.strip("<|>") for each in getattr(told, "lang_to_id", None) or ()
        } or {_ENGLISH}
        self._thread = ThreadPoolExecutor(
            1,
            thread_name_prefix="transformers",
            initializer=torch.set_num_threads,  # OpenMP has a number per calling thread
            initargs=(settings.threads,),
        )
        self._waiting = 0

    def transcribe(self, speech: Speech, stopped: Callable[[], bool]) -> Transcript:
        asked = self._generation(speech)
        asked["stopping_criteria"] = transformers.StoppingCriteriaList([_Stop(stopped)])
        self._waiting += 1
        try:
            return self._thread.submit(self._compute, speech, asked, stopped).result()
        except (CoreError, CancelledError):
            raise
        except RuntimeError as error:
            raise failed(error) from None
        finally:
            self._waiting -= 1

    def status(self) -> Status:
        waiting = self._waiting
        return Status(max(0, waiting - 1), min(1, waiting))

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _generation(self, speech: Speech) -> dict[str, Any]:
        """Return arguments of Whisper's `generate`. Raises CoreError(INVALID) for an unknown language."""
        asked: dict[str, Any] = {}
        language = speech.language.lower()
        if language and language not in self._languages:
            raise invalid(
                f"the input 'language' is '{speech.language[:50]}', the model has "
                f"{', '.join(sorted(self._languages))}"
            )
        if self._multilingual:
            asked["task"] = "transcribe"
            if language:
                asked["language"] = language
        if speech.temperature is not None:
            # Whisper takes the most likely token where this is 0, and draws tokens otherwise.
            asked["temperature"] = speech.temperature
        if speech.prompt:
            asked["prompt_ids"] = self._prompt(speech.prompt)
        return asked

    def _prompt(self, text: str) -> Any:
        """Return the tokens of the prompt; of a long one the last: Whisper reads half its context."""
        tokens = self._tokenizer.get_prompt_ids(text, return_tensors="pt")
        most = self._model.config.max_target_positions // 2 - 1
        if len(tokens) > most:
            tokens = torch.cat([tokens[:1], tokens[-most + 1 :]])
        return tokens.to(self._model.device)

    # on the thread ----------------------------------------------------------

    def _compute(
        self, speech: Speech, asked: dict[str, Any], stopped: Callable[[], bool]
    ) -> Transcript:
        if stopped():
            raise cancelled()
        seconds = len(speech.samples) / RATE
        with torch.inference_mode():
            # Sounds longer than 30 seconds are read by their times, so these are always computed there.
            found = self._pipeline(
                {"raw": speech.samples, "sampling_rate": RATE},
                return_timestamps=speech.times or seconds > self._window,
                return_language=self._multilingual or None,
                generate_kwargs=asked,
            )
        chunks = found.get("chunks", ())
        languages = [each.get("language") for each in chunks if each.get("language")]
        language = languages[0] if languages else speech.language or self._only_language()
        segments = [_segment(each, seconds) for each in chunks] if speech.times else ()
        return Transcript(found["text"].strip(), _code(language), tuple(segments))

    def _only_language(self) -> str:
        return "" if self._multilingual else _ENGLISH

    @property
    def _window(self) -> float:
        """Seconds of a sound that the model reads at once."""
        return float(self._pipeline.feature_extractor.chunk_length)


class _Stop(transformers.StoppingCriteria):  # type: ignore[misc]  # transformers has no complete types
    """Ends a generation, and all those of the same sound, when its request is cancelled."""

    def __init__(self, stopped: Callable[[], bool]):
        self._stopped = stopped

    def __call__(self, input_ids: Any, scores: Any, **more: Any) -> Any:
        if self._stopped():
            raise cancelled()
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def _segment(chunk: dict[str, Any], seconds: float) -> Segment:
    """Return the segment of a chunk. Where Whisper has found no end, it is that of the sound."""
    start, end = chunk["timestamp"]
    return Segment(float(start or 0), seconds if end is None else float(end), chunk["text"])


def _code(language: str) -> str:
    """Return the code of a language, such as "en" for "english"; an unknown name unchanged."""
    names = transformers.models.whisper.tokenization_whisper.TO_LANGUAGE_CODE
    return str(names.get(language.lower(), language))
