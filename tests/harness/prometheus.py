"""Prometheus."""

import json
import math
import typing
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence

from harness.ports import HOST
from harness.server import Server, find_program

CONFIG = """\
global: {scrape_interval: 500ms, scrape_timeout: 500ms}
scrape_configs:
"""
Labels = Mapping[str, str]


class Prometheus(Server):
    """A Prometheus that scrapes twice a second.

    :param targets: name of the job -> its ports on the loopback interface.
    """

    name = "Prometheus"

    def __init__(self, targets: Mapping[str, Sequence[int]] | None = None) -> None:
        super().__init__()
        self._targets = targets or {}

    @property
    def url(self) -> str:
        """Its own API's."""
        return f"http://{HOST}:{self.port}"

    def _prepare(self) -> None:
        jobs = "".join(
            f"- job_name: {job}\n  static_configs:\n  - targets: {[f'{HOST}:{port}' for port in ports]}\n"
            for job, ports in self._targets.items()
        )
        (self.directory / "prometheus.yml").write_text(CONFIG + jobs)

    def _command(self) -> list[str]:
        return [
            str(find_program("prometheus", "prometheus")),
            f"--config.file={self.directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.directory / 'data'}",
            f"--web.listen-address={HOST}:{self.port}",
        ]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """Return the present value of an expression of PromQL: (labels, value) of each numeric series.

        :raises OSError: the expression is invalid.
        """
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            series_list: typing.Any = json.load(answer)["data"]["result"]
        values = [(series["metric"], float(series["value"][1])) for series in series_list]
        return [(labels, value) for labels, value in values if not math.isnan(value)]

    def value(self, expression: str) -> float | None:
        """That of the one series; None: there is none."""
        values = self.query(expression)
        assert len(values) <= 1, values
        return values[0][1] if values else None
