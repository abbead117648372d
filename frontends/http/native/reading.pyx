# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Requests of the lane whose JSON takes long to read; see reading.pxd.

Lane ─► [Reading] ─► parse, on another thread ─► Server.infer ─► Flight
"""

cimport cython

from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from core.response cimport Reply
from frontends.http.native.flight cimport Flight
from frontends.http.native.port cimport Port
from frontends.http.native.told cimport Told

import asyncio

from core.errors import CoreError
from frontends.http.aside import begin, turn
from frontends.http.codec.parse import parse

@cython.final
cdef class Reading:
    """The way of one request from its body to its model."""

    cdef Port _port
    cdef Flight _flight
    cdef object _body, _signature

    def parsed(self):
        """The request and the form of its answer; None if the client has gone. On another thread."""
        cdef Told told = self._flight.told
        if self._flight.crew is None:
            return None
        return parse(
            told.model, told.head.version, self._signature, told.headers(), self._body,
            self._port.most_bytes, self._port.regions,
        )

    async def _read(self):
        async with turn():
            return await begin(self.parsed)

    def _over(self, task):
        cdef Flight flight = self._flight
        cdef Told told = flight.told
        cdef ModelEndpoint endpoint
        cdef Reply reply
        if task.cancelled() or flight.crew is None:
            return
        self._body = None
        try:
            request, flight.form = task.result()
            flight.crew.was_read(flight, <InferenceRequest>request)
            endpoint = self._port.endpoints.find(told.model, told.head.version)  # it may be another by now
            reply = endpoint.submit(<InferenceRequest>request)
            flight.reply = reply
            reply.listen(flight)
        except CoreError as error:
            flight.fail(error)
        except Exception:
            flight.fail(None)


cdef read_aside(Port port, Flight flight, signature, body):
    cdef Reading reading = Reading.__new__(Reading)
    reading._port = port
    reading._flight = flight
    reading._signature = signature
    reading._body = body
    port.loop.create_task(reading._read()).add_done_callback(reading._over)
