"""The forms of the findings: text for people, JSON, and SARIF for code scanning."""
