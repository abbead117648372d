"""GrpcControl: questions to a server over gRPC, by grpcio."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.wrappers_pb2 import StringValue

from core.errors import CoreError, Kind, invalid
from core_bench.model.address import Address
from core_bench.model.control import memory_refused, not_reached
from core_bench.model.description import ModelInfo, model_info, unknown_model
from core_bench.plan import Side, Tls
from frontends.grpc.protocol import messages

SERVICE = "/inference.GRPCInferenceService/"
_TIMEOUT_S = 30


def credentials(tls: Tls) -> grpc.ChannelCredentials:
    """Return the credentials of a client. Raises CoreError for files that cannot be read."""

    def read(path: str) -> bytes | None:
        return Path(path).read_bytes() if path else None

    try:
        return grpc.ssl_channel_credentials(read(tls.ca_file), read(tls.key), read(tls.certificate))
    except OSError as error:
        raise invalid(f"cannot read the certificates: {error}") from None


class GrpcControl:
    """One channel. Statuses become CoreError."""

    def __init__(self, side: Side, address: Address):
        self._address = address
        self._metadata = tuple((name.lower(), value) for name, value in side.headers)
        if address.tls or side.tls.on:
            self._channel = grpc.secure_channel(address.shown, credentials(side.tls))
        else:
            self._channel = grpc.insecure_channel(address.shown)

    def describe(self, model: str, version: str) -> ModelInfo:
        try:
            metadata = self.ask("ModelMetadata", name=model, version=version)
            config = self.ask("ModelConfig", name=model, version=version)
        except grpc.RpcError as error:
            raise self._refused(model, error) from None
        # 64-bit numbers are strings in this JSON; model_info reads both.
        return model_info(metadata, config.get("config"))

    def statistics(self, model: str, version: str) -> list[Mapping[str, Any]]:
        try:
            return list(self.ask("ModelStatistics", name=model, version=version)["model_stats"])
        except (grpc.RpcError, KeyError):
            return []

    def register(self, name: str, key: str, size: int) -> None:
        try:
            self.ask("SystemSharedMemoryRegister", name=name, key=key, offset=0, byte_size=size)
        except grpc.RpcError as error:
            raise memory_refused(self._address.shown, str(error.details())) from None

    def unregister(self, name: str) -> None:
        try:
            self.ask("SystemSharedMemoryUnregister", name=name)
        except grpc.RpcError as error:
            raise memory_refused(self._address.shown, str(error.details())) from None

    def close(self) -> None:
        self._channel.close()

    def _refused(self, model: str, error: grpc.RpcError) -> CoreError:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            return not_reached(self._address, error.details())
        try:
            index = self.ask("RepositoryIndex").get("models", ())
        except grpc.RpcError:
            index = ()
        names = sorted({str(each["name"]) for each in index})
        if names and model not in names:
            return unknown_model(model, names, self._address.shown)
        text = f"the server {self._address.shown} refuses model '{model}': {error.details()}"
        return CoreError(Kind.INVALID, text)

    def ask(self, method: str, timeout_s: float = _TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Return the answer of a method as JSON has it. Raises grpc.RpcError."""
        request = getattr(messages, f"{method}Request")(**fields)
        answer = getattr(messages, f"{method}Response")
        call: Any = self._channel.unary_unary(
            SERVICE + method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        found = call(request, timeout=timeout_s, metadata=self._metadata)
        made: dict[str, Any] = MessageToDict(found, preserving_proto_field_name=True)
        return made

    def operate(self, operation: str, timeout_s: float = _TIMEOUT_S, **arguments: Any) -> Any:
        """Return the result of a control operation, such as "repository.poll". Raises grpc.RpcError.

        Arguments and result are values of JSON.
        """
        area, _, method = operation.rpartition(".")
        call: Any = self._channel.unary_unary(
            f"/core.control.{area}/{method}",
            request_serializer=StringValue.SerializeToString,
            response_deserializer=StringValue.FromString,
        )
        request = StringValue(value=json.dumps(arguments))
        found = call(request, timeout=timeout_s, metadata=self._metadata)
        return json.loads(found.value)["result"]
