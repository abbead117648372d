"""HTTP bodies ↔ the nouns of core. Knows no engine: a compiled lane shares these rooms."""
