"""What each path does, by area: `async (InferenceServer, Call) -> Answer`. Knows no engine.

A CoreError that a service raises becomes the answer of its kind (frontends.http.errors).
"""
