"""The flags of core bench: in one parser. A flag that perf_analyzer has too has the same name here."""

from __future__ import annotations

import argparse

from core_bench.flags import values
from core_bench.flags.values import count, whole

SUMMARY = "send load to a model and measure it"

_EPILOG = """\
Examples:
  core bench digits                                      one request at once, over HTTP
  core bench digits --concurrency-range 1:16:5 --html report.html
  core bench digits -i grpc --request-rate-range 2000 --request-distribution poisson
  core bench digits --find-knee --slo p99=20ms           the highest load that keeps the objective
  core bench digits --versus localhost:9000              two servers, in turn
  core bench digits --versus "-i grpc"                   two ways to the same server
  core bench chat --service-kind openai --streaming --concurrency-range 8

The exit status is 1 if requests failed or the server was lost, 2 for a wrong command line, 130 after Ctrl-C.
"""


def parser() -> argparse.ArgumentParser:
    """Return a parser of the whole command line, without abbreviations of flags."""
    made = argparse.ArgumentParser(
        "core bench",
        usage="core bench MODEL [-u URL] [flags]   (core bench --help lists them)",
        description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}. Takes the flags of perf_analyzer.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("positional_model", nargs="?", metavar="MODEL", help="name of the model")
    server_flags(made.add_argument_group("server").add_argument)
    _load(made.add_argument_group("load").add_argument)
    request_flags(made.add_argument_group("requests").add_argument)
    _measurement(made.add_argument_group("measurement").add_argument)
    _results(made.add_argument_group("results").add_argument)
    _without_effect(made.add_argument_group("accepted without effect").add_argument)
    return made


def server_flags(add) -> None:  # type: ignore[no-untyped-def]
    """Add the flags that say which server and which model; core tune has them too."""
    add("-m", "--model-name", dest="model", help="the same as MODEL")
    add("-x", "--model-version", dest="version", default="", help="version of the model")
    add(
        "-u",
        "--url",
        default="",
        help="HOST:PORT, http(s)://… or unix:PATH; else localhost:8000, 8001 for gRPC",
    )
    add("-i", "--protocol", default="http", type=str.lower, help="http (the default) or grpc")
    add("--service-kind", default="triton", help="triton (the v2 protocol), openai, or in_process")
    add(
        "--model-repository",
        action="append",
        default=[],
        metavar="DIR",
        help="of in_process; may be repeated",
    )
    add(
        "--endpoint",
        default="v1/chat/completions",
        help="of openai: %(default)s, v1/completions, v1/embeddings",
    )
    add(
        "--streaming",
        action="store_true",
        help="a gRPC stream; over HTTP generate_stream, or events of openai",
    )
    add(
        "-H",
        "--header",
        dest="headers",
        action="append",
        default=[],
        type=values.header,
        metavar="NAME:VALUE",
    )
    add("--grpc-compression-algorithm", default="none", choices=("none", "gzip", "deflate"))
    add("--ssl-grpc-use-ssl", nargs="?", const="true", default="false", choices=("true", "false"))
    add(
        "--ssl-grpc-root-certifications-file",
        "--ssl-https-ca-certificates-file",
        dest="ca_file",
        default="",
    )
    add("--ssl-grpc-private-key-file", "--ssl-https-private-key-file", dest="key_file", default="")
    add(
        "--ssl-grpc-certificate-chain-file",
        "--ssl-https-client-certificate-file",
        dest="certificate",
        default="",
    )
    add("--ssl-https-verify-peer", type=int, default=1, choices=(0, 1))
    add("--ssl-https-verify-host", type=int, default=2, choices=(0, 1, 2))


def _load(add) -> None:  # type: ignore[no-untyped-def]
    add(
        "--concurrency-range",
        type=values.number_range,
        metavar="START:END:STEP",
        help="requests in flight at once",
    )
    add("-t", dest="concurrency", type=count, metavar="N", help="the same as --concurrency-range N")
    add(
        "--request-rate-range",
        type=values.number_range,
        metavar="START:END:STEP",
        help="requests per second",
    )
    add(
        "--request-distribution",
        default="constant",
        choices=("constant", "poisson"),
        help="of a rate",
    )
    add(
        "--request-intervals",
        type=values.intervals,
        metavar="FILE",
        help="microseconds between requests, by line",
    )
    add(
        "-l",
        "--latency-threshold",
        type=values.milliseconds,
        metavar="MS",
        help="end a range above this latency",
    )
    add("--slo", type=values.objective, metavar="p99=20ms", help="the same, with the percentile")
    add(
        "--find-knee",
        action="store_true",
        help="raise the load until it misses the objective or grows no more",
    )
    add(
        "--binary-search",
        action="store_true",
        help="find the highest load of a range within the threshold",
    )
    add(
        "--versus",
        metavar="URL|FLAGS",
        help="compare with another server, or with other flags, in turn",
    )
    add(
        "--connections",
        type=count,
        default=0,
        metavar="N",
        help="of a rate: at most; the default is 512",
    )
    add(
        "--threads",
        type=count,
        default=1,
        metavar="N",
        help="processors that send load; the default is 1",
    )


def request_flags(add) -> None:  # type: ignore[no-untyped-def]
    """Add the flags that say what is sent; core tune has them too."""
    add(
        "-b",
        "--batch-size",
        dest="batch",
        type=count,
        default=1,
        metavar="N",
        help="rows of a request",
    )
    add(
        "--input-data",
        action="append",
        default=[],
        metavar="random|zero|PATH",
        help="a JSON file, a folder, or a capture",
    )
    add(
        "--recorded-rows",
        action="store_true",
        help="requests of a capture keep their rows; else each row is a request",
    )
    add("--data-directory", help="the same as --input-data with a folder")
    add("-z", dest="zero", action="store_true", help="the same as --input-data zero")
    add(
        "--shape",
        action="append",
        default=[],
        type=values.shape,
        metavar="NAME:D1,D2",
        help="without the batch",
    )
    add(
        "--string-length",
        type=count,
        default=128,
        metavar="N",
        help="of random strings; the default is 128",
    )
    add("--string-data", metavar="TEXT", help="the value of strings; of openai the prompt")
    add("--input-tensor-format", default="binary", choices=("binary", "json"))
    add("--output-tensor-format", default="binary", choices=("binary", "json"))
    add(
        "--request-parameter",
        action="append",
        default=[],
        type=values.parameter,
        metavar="NAME:VALUE:TYPE",
    )
    add("--shared-memory", default="none", choices=("none", "system", "cuda"), help="for tensors")
    add(
        "--output-shared-memory-size",
        type=count,
        default=102400,
        metavar="BYTES",
        help="of outputs of unknown size",
    )
    add(
        "--sequence-length",
        type=count,
        metavar="N",
        help="requests of a sequence; 20, or those of its data",
    )
    add("--sequence-length-variation", type=float, default=20.0, metavar="PERCENT")
    add("--sequence-id-range", type=values.id_range, default=(1, 0), metavar="START:END")
    add(
        "--num-of-sequences",
        type=count,
        default=4,
        metavar="N",
        help="sequences at once, of a rate",
    )
    add(
        "--different-requests",
        type=count,
        default=16,
        metavar="N",
        help="random requests that are sent in turn",
    )
    add("--seed", type=whole, default=1, help="of random data, intervals and lengths")


def _measurement(add) -> None:  # type: ignore[no-untyped-def]
    add(
        "-p",
        "--measurement-interval",
        type=values.milliseconds,
        metavar="MS",
        help="of a round; the default is 1000",
    )
    add("--measurement-mode", default="time_windows", choices=("time_windows", "count_windows"))
    add(
        "--measurement-request-count",
        type=count,
        default=50,
        metavar="N",
        help="of a round, with count_windows",
    )
    add("--request-count", type=whole, default=0, metavar="N", help="one round of N requests")
    add(
        "--rounds",
        type=count,
        metavar="N",
        help="of each load; the default is 6, which gives an interval of 97 %%",
    )
    add(
        "-s",
        "--stability-percentage",
        type=float,
        metavar="PERCENT",
        help="add rounds until the interval is so narrow",
    )
    add("-r", "--max-trials", type=count, metavar="N", help="rounds at most; the default is 10")
    add(
        "--percentile",
        type=float,
        default=-1,
        metavar="P",
        help="of --latency-threshold; the default is the average",
    )
    add(
        "--warmup",
        type=values.duration,
        default=1.0,
        metavar="TIME",
        help="load that is not measured; 1s",
    )
    add("--timeout", type=values.duration, default=60.0, metavar="TIME", help="for an answer; 60s")


def _results(add) -> None:  # type: ignore[no-untyped-def]
    add(
        "-f",
        "--latency-report-file",
        dest="csv",
        metavar="FILE",
        help="CSV with the columns of perf_analyzer",
    )
    add("--verbose-csv", action="store_true", help="more columns in it")
    add(
        "--json",
        metavar="FILE",
        help="everything, with the histograms of all rounds; - for the standard output",
    )
    add("--html", metavar="FILE", help="one page with charts, which loads nothing")
    add("-v", "--verbose", action="store_true", help="print each round")


def _without_effect(add) -> None:  # type: ignore[no-untyped-def]
    add(
        "-a",
        "--async",
        action="store_true",
        dest="_async",
        help="every load generator is asynchronous",
    )
    add("--sync", action="store_true", dest="_sync", help="the same")
    add("--serial-sequences", action="store_true", help="sequences are always serial")
    add("--max-threads", type=int, help="--threads sets the number")
