from frontends.http.native.flight cimport Flight
from frontends.http.native.port cimport Port
from frontends.http.native.told cimport Told

# Whether the JSON of a request with this head takes more than a few milliseconds to read.
cdef bint takes_long(Told told) noexcept

# Read the request in a body on another thread, and hand it to its model then: the model is the one that
# `flight.told` names, `signature` its. Errors end the flight.
cdef read_aside(Port port, Flight flight, signature, body)
