"""The contracts of engines."""

from backend_vllm.conformance import TestContract as TestContract
from backend_vllm.conformance import TestEmbeddings as TestEmbeddings
from backend_vllm.conformance import TestRanks as TestRanks
