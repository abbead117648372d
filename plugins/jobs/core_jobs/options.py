"""The options of jobs."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import invalid
from core.options import Options, Section, group
from core.options.values import STRING, Form, integer, read_float

_jobs = group("Jobs")


def _read_secs(flag: str, text: str) -> float:
    secs = read_float(flag, text)
    if not 0 <= secs <= 1e9:
        raise invalid(f"--{flag}={text}: give a number of seconds from 0 to 1e9")
    return secs


_SECS = Form("<float>", _read_secs)


@dataclass(kw_only=True)
class JobsOptions(Section):
    # fmt: off
    jobs_folder: str = _jobs(STRING, "",
        "Folder on a local disk that keeps jobs and their results; it enables the routes of jobs "
        "(docs/operate/jobs.md).")
    jobs_running: int = _jobs(integer(1), 4,
        "Jobs that run at a time, over all workers; others wait.")
    jobs_concurrency: int = _jobs(integer(1), 8,
        "Requests of one job that are at models at a time.")
    jobs_files: int = _jobs(integer(1), 1000,
        "Files of one job that were uploaded together.")
    jobs_per_caller: int = _jobs(integer(1), 100,
        "Jobs of one caller that may wait or run.")
    jobs_caller_bytes: int = _jobs(integer(), 0,
        "Bytes of requests and results that the jobs of one caller may keep. 0: no limit of its own.")
    jobs_result_bytes: int = _jobs(integer(1), 1 << 30,
        "Bytes of the results of one job; a job with more fails.")
    jobs_max_bytes: int = _jobs(integer(1 << 20), 10 << 30,
        "Bytes of the folder. The last tenth is for results: new jobs are refused before.")
    jobs_keep_secs: float = _jobs(_SECS, 86400.0,
        "Seconds for which an ended job and its results are kept.")
    jobs_patience_secs: float = _jobs(_SECS, 600.0,
        "Seconds for which a job waits for a model that does not serve or has no room, before it fails.")
    # fmt: on

    def check(self, options: Options) -> None:
        """Raise CoreError(INVALID) for limits that exclude each other."""
        if self.jobs_result_bytes > self.jobs_max_bytes and self.jobs_folder:
            raise invalid(
                f"--jobs-result-bytes={self.jobs_result_bytes} is above "
                f"--jobs-max-bytes={self.jobs_max_bytes}: a job cannot keep more than the folder"
            )
