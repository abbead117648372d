"""What each path does, by area: `async (InferenceServer, HttpRequest) -> HttpResponse`. Knows no engine.

A CoreError that a service raises becomes the answer of its kind (frontends.http.errors).
"""
