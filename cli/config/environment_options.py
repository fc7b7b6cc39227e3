"""Options of the environments and templates that an operator has for all stacks, in [stacks]."""

import pathlib

from oslo_config import cfg

from ...engine.template_urls import FetchLimits

_DIRECTORY = pathlib.Path("/etc/stoker")
ENVIRONMENTS = [
    cfg.StrOpt(
        "environment_dir",
        default=str(_DIRECTORY / "environment.d"),
        help="Directory of environment files for all stacks, which are merged in the order of their names. "
        "They map types to other types or to templates, switch types off (null), and give defaults of "
        "parameters. The environment of a stack precedes them. All programs read them at their start, "
        "and do not start with an invalid file. The directory need not exist.",
    ),
    cfg.ListOpt(
        "template_url_hosts",
        default=[],
        help="Hosts, NAME or NAME:PORT, separated by commas, from which requests and nested stacks "
        "(`template_url`, `AWS::CloudFormation::Stack`) may have a template fetched, by HTTPS only. "
        "Redirects lead to these hosts only, and none of their addresses may be private. Users can make "
        "Stoker send requests there. None: no template is fetched.",
    ),
    cfg.ListOpt(
        "remote_cloud_hosts",
        default=[],
        help="Hosts, NAME (all ports) or NAME:PORT, separated by commas, that a credential in "
        "`credential_secret_id` of OS::Heat::Stack may name: the other cloud's Keystone, and the "
        "services in its service catalog. Users can make conductors send requests there. `*`: all "
        "others, too, whose addresses are public. No request is sent to metadata services. Empty: no "
        "stacks in other clouds.",
    ),
    cfg.URIOpt(
        "remote_cloud_proxy",
        schemes=["http", "https"],
        help="Address of a proxy for the requests to other clouds. It decides which addresses are reached, "
        "so it must refuse private ones. Proxies of the environment are not used for these requests.",
    ),
    cfg.FloatOpt(
        "fetch_timeout",
        default=10.0,
        min=0.1,
        max=300,
        help="Seconds in which a template of template_url, or all files of a container of Swift "
        "(`files_container`), must have been fetched. The request occupies a thread of the API that long; a "
        "nested stack's step occupies one of the conductor.",
    ),
    cfg.StrOpt(
        "template_dir",
        default=str(_DIRECTORY / "templates"),
        help="Directory of templates (`*.yaml`, `*.template`) that all stacks may use as types by their "
        "names, and to which files of environment_dir may map types. It need not exist.",
    ),
]


def fetch_limits(conf: cfg.ConfigOpts) -> FetchLimits:
    """Return the limits of templates that are fetched."""
    section = conf.stacks
    most = conf.api.max_body
    return FetchLimits(
        hosts=section.template_url_hosts,
        max_bytes=min(most, section.max_template or most),
        seconds=section.fetch_timeout,
    )
