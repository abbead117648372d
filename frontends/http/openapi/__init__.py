"""What the server tells of its own routes, as OpenAPI 3.1.

router ─► [document] ─► GET /openapi.json.  Paths, parameters and categories come from the router's table;
what each service takes and gives stands in operations.py, with the schemas of schemas.py.
"""
