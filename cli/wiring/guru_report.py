"""The report of a daemon's state, by oslo.reports.

That renders by Jinja, whose import takes a sixth of a start and 8 MB: so `reports` imports this module only
when somebody asks for a report.
"""

import typing
from collections.abc import Callable, Mapping

from oslo_config import cfg
from oslo_reports.generators.conf import ConfigReportGenerator
from oslo_reports.generators.threading import ThreadReportGenerator
from oslo_reports.generators.version import PackageReportGenerator
from oslo_reports.guru_meditation_report import TextGuruMeditation
from oslo_reports.models.with_default_views import ModelWithDefaultViews

from ..daemon.version import VERSION

Sections = Mapping[str, Callable[[], str]]


def write(conf: cfg.ConfigOpts, program: str, sections: Sections) -> None:
    """Write a report to standard error, or to a file in [oslo_reports] log_dir.

    With [oslo_reports] file_event_handler a thread writes one whenever that file changes, from now on.

    :param sections: functions that return the texts of our sections, by title.
    """
    _Report.ours = sections
    if conf.oslo_reports.file_event_handler:
        _Report.setup_autorun(_Product(), program, conf=conf)
    else:
        _Report.handle_signal(_Product(), program, conf.oslo_reports.log_dir, None)


class _Report(TextGuruMeditation):
    """A report without two of the usual sections.

    For the one on processes psutil reads files that systemd hides from the daemons; there are no green
    threads.
    """

    ours: typing.ClassVar[Sections] = {}

    def _readd_sections(self) -> None:
        del self.sections[self.start_section_index :]
        self.add_section("Package", PackageReportGenerator(self.version_obj))
        self.add_section("Threads", ThreadReportGenerator(self.traceback))
        self.add_section("Configuration", ConfigReportGenerator())
        for title, text in self.ours.items():
            self.add_section(title, _section(text))


class _Product:
    """The product's name and version, for oslo.reports."""

    def vendor_string(self) -> str:
        return "OpenStack"

    def product_string(self) -> str:
        return "Stoker"

    def version_string_with_package(self) -> str:
        return VERSION


def _section(text: Callable[[], str]) -> Callable[[], ModelWithDefaultViews]:
    def make() -> ModelWithDefaultViews:
        content = text()
        return ModelWithDefaultViews(text_view=lambda model: content)

    return make
