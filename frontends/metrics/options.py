"""MetricsOptions: the flags of the port of metrics. core has those of the metrics themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import invalid
from core.options import Listener, Options, Section, group
from core.options.values import BOOL, PORT, STRING
from frontends.http.options import HttpOptions
from frontends.shared.options import SharedOptions

_metrics = group("Metrics")


@dataclass(kw_only=True)
class MetricsOptions(Section):
    # fmt: off
    metrics_address: str = _metrics(STRING, "",
        "Address of the metrics; by default --http-address, or 127.0.0.1 if that is a Unix domain socket.")
    metrics_port: int = _metrics(PORT, 8002, "Port of metrics.")
    metrics_use_ssl: bool = _metrics(BOOL, False,
        "Serve metrics over TLS, with the certificates of HTTP.")
    # fmt: on

    @property
    def reads_again(self) -> bool:
        return self.metrics_use_ssl

    def resolve(self, options: Options) -> None:
        """Set metrics_address, if it is empty, to the address of HTTP.

        If that is a Unix domain socket, set it to 127.0.0.1.
        """
        http = HttpOptions.of(options).http_address
        default = "127.0.0.1" if http.startswith("unix:") else http
        self.metrics_address = self.metrics_address or default

    def check(self, options: Options) -> None:
        """Raise CoreError(INVALID) if --metrics-use-ssl is set without HTTP's certificate or its key."""
        http = HttpOptions.of(options)
        if self.metrics_use_ssl and not (http.http_server_cert and http.http_server_key):
            raise invalid(
                "--metrics-use-ssl needs the certificate of --http-server-cert and --http-server-key"
            )

    def listeners(self, options: Options) -> Sequence[Listener]:
        if not options.allow_metrics:
            return ()
        return (
            Listener(
                "metrics",
                "metrics",
                self.metrics_address,
                self.metrics_port,
                mode=SharedOptions.of(options).unix_socket_mode,
                encrypted=self.metrics_use_ssl,
                inference=False,
            ),
        )
