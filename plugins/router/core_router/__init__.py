"""core-router: one address for several servers of the v2 protocol.

client ─► http.client ─► http.targets ─► http.forward ─► choice ─► http.upstream ─► server
client ─► grpc.port ─► grpc.unary, grpc.infer_stream ─► choice ─► grpc.pool ─► server
                                                          ▲
                      servers.addresses ─► servers.watch ─┴► servers.table
"""
