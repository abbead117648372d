"""Runs the conformance tests of backends for all backends here, and those of engines for letters."""

from backend_testing.conformance import TestIdentity as TestIdentity
from backend_testing.conformance import TestRepeat as TestRepeat
from backend_testing.conformance import TestSquare as TestSquare
from backend_testing.letters.conformance import TestEmbeddings as TestEmbeddings
from backend_testing.letters.conformance import TestLetters as TestLetters
from backend_testing.letters.conformance import TestLettersAsBackend as TestLettersAsBackend
from backend_testing.letters.conformance import TestRanks as TestRanks
