from typing import Any

class Members:
    """Member functions of OpenVINO GenAI that its Python package calls with the GIL held, or does not offer.

    library   path of libopenvino_genai; the import of openvino_genai has loaded it
    Raises RuntimeError if the library lacks one of the functions.
    """

    def __init__(self, library: str) -> None: ...
    def step(self, pipeline: Any) -> None:
        """Compute one step of a ContinuousBatchingPipeline, without the GIL.

        One thread at a time: no other thread may call `add_request` of the same pipeline meanwhile.
        Raises RuntimeError with the text of the C++ exception, and TypeError for another object.
        """

    def check_structure(self, structure: Any, tokenizer: Any) -> None:
        """Raise RuntimeError if a StructuredOutputConfig cannot become a grammar.

        Thread-safe. Runs without the GIL. Raises TypeError for other objects.
        """
