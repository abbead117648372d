from frontends.http.native.flight cimport Flight
from frontends.http.native.port cimport Port

# Read the request in a body on another thread, and hand it to its model then: the model is the one that
# `flight.told` names, `signature` its. Errors end the flight.
cdef read_aside(Port port, Flight flight, signature, body)
