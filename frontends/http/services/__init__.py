"""The service of each path, by area: `async (InferenceServer, HttpRequest) -> HttpResponse`. Engine-free.

A CoreError that a service raises becomes a response with its status (frontends.http.errors).
"""
