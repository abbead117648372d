"""The contracts of engines and backends."""

from backend_transformers.conformance import TestAsBackend as TestAsBackend
from backend_transformers.conformance import TestContract as TestContract
from backend_transformers.conformance import TestEmbeddings as TestEmbeddings
from backend_transformers.conformance import TestRanks as TestRanks
from backend_transformers.conformance import TestWithImages as TestWithImages
