"""The frontends: http, grpc, metrics, memory, and in_process for programs that hold a server.

Also what they share (shared), the console (terminal), and commands of the program `core` (commands).
"""
