"""The user_data of a server: as it is, or as a message of MIME for cloud-init and the agents in the server.

The parts, their names and the paths in the server are those that heat-cfntools and os-collect-config know:

================== ====================== ==========================================================
part               type                   purpose
================== ====================== ==========================================================
cloud-config       cloud-config           cloud-init keeps its output
boothook.sh        cloud-boothook         links the programs of heat-cfntools
part-handler.py    part-handler           writes parts of the type x-cfninitdata to files
cfn-userdata       x-cfninitdata          HEAT_CFNTOOLS: the user's script
loguserdata.sh     x-shellscript          HEAT_CFNTOOLS: runs it, and logs its output
cfn-init-data      x-cfninitdata          the metadata of the server's resource
cfn-metadata-server, cfn-boto-cfg         HEAT_CFNTOOLS: where the agents find the metadata
================== ====================== ==========================================================
"""

import email.message
import json
import urllib.parse
from collections.abc import Iterator

from ....shapes import JsonMap
from ...contract import ResourceView, StepContext
from ...guests import collect_config, guest_metadata
from ...heat.software_configs import config_text
from ...mime import mime_message, mime_part, parts_of

COLLECTORS = ("ec2",)
"""Collectors that the agents in every server have, besides that of its transport."""
RAW = "RAW"
CFNTOOLS = "HEAT_CFNTOOLS"
FILES = "x-cfninitdata"
"""Subtype of parts that the part handler writes to files."""
CLOUD_CONFIG = "output: {all: '| tee -a /var/log/cloud-init-output.log'}\n"
BOOTHOOK = """#!/bin/sh
# Images may have heat-cfntools without the links to its programs.
command -v cfn-create-aws-symlinks >/dev/null 2>&1 && cfn-create-aws-symlinks
exit 0
"""
PART_HANDLER = '''#part-handler
"""Writes parts for heat-cfntools and os-collect-config to files."""

import os

DIRECTORIES = ("/var/lib/heat-cfntools", "/var/lib/cloud/data")


def list_types():
    return ["text/x-cfninitdata"]


def handle_part(data, ctype, filename, payload):
    if ctype not in list_types():
        return
    if isinstance(payload, str):
        payload = payload.encode("utf-8")
    for directory in DIRECTORIES:
        if not os.path.isdir(directory):
            os.makedirs(directory, 0o700)
        with open(os.path.join(directory, os.path.basename(filename)), "wb") as part:
            os.fchmod(part.fileno(), 0o600)
            part.write(payload)
'''
RUN_USER_DATA = """#!/bin/sh
# Runs the user's script, and logs what it prints.
script=/var/lib/heat-cfntools/cfn-userdata
log=/var/log/heat-provision.log
umask 077
echo "Provision began: $(date)" | tee -a "$log"
code=0
if [ "$(head -c 2 "$script")" = "#!" ]; then
    chmod 700 "$script"
    status=$(mktemp)
    { "$script" 2>&1; echo $? > "$status"; } | tee -a "$log"
    code=$(cat "$status")
    rm -f "$status"
else
    echo "Userdata empty or not executable" | tee -a "$log"
fi
echo "Provision done: $(date)" | tee -a "$log"
[ "$code" -eq 0 ] && touch /var/lib/heat-cfntools/provision-finished
exit "$code"
"""


def server_user_data(target: ResourceView, context: StepContext) -> str:
    """Return the user_data of a server; "": it has none."""
    form = target.properties["user_data_format"]
    user_data = target.properties["user_data"] or ""
    if form != CFNTOOLS:
        user_data = config_text(user_data, context)
    if form == RAW:
        return user_data
    parts = (
        _cfntools(target, user_data, context)
        if form == CFNTOOLS
        else _software_config(target, user_data, context)
    )
    return mime_message([*_boot(), *parts], target.key)


def least_user_data(form: str, user_data: str) -> str:
    """Return the part of a server's user_data that is known without its metadata and addresses.

    :param form: the property user_data_format.
    :param user_data: the user's own text, which is not the id of a software config.
    """
    if form == RAW:
        return user_data
    if form == CFNTOOLS:
        own = [mime_part(user_data, FILES, "cfn-userdata"), mime_part(RUN_USER_DATA, "x-shellscript")]
    else:
        own = parts_of(user_data) or [mime_part(user_data)]
    return mime_message([*_boot(), *own], "")


def _boot() -> Iterator[email.message.Message]:
    yield mime_part(CLOUD_CONFIG, "cloud-config", "cloud-config")
    yield mime_part(BOOTHOOK, "cloud-boothook", "boothook.sh")
    yield mime_part(PART_HANDLER, "part-handler", "part-handler.py")


def _cfntools(target: ResourceView, user_data: str, context: StepContext) -> Iterator[email.message.Message]:
    yield mime_part(user_data, FILES, "cfn-userdata")
    yield mime_part(RUN_USER_DATA, "x-shellscript", "loguserdata.sh")
    if target.metadata:
        yield _init_data(target.metadata)
    url = context.guest_access().metadata_url
    yield mime_part(url, FILES, "cfn-metadata-server")
    yield mime_part(boto_config(url), FILES, "cfn-boto-cfg")


def _software_config(
    target: ResourceView, user_data: str, context: StepContext
) -> Iterator[email.message.Message]:
    yield from parts_of(user_data) or [mime_part(user_data)]
    transport = target.properties["software_config_transport"]
    entries = collect_config(transport, context.guest_access(), COLLECTORS)
    yield _init_data(guest_metadata(target.metadata, entries, ()))


def _init_data(metadata: JsonMap) -> email.message.Message:
    return mime_part(json.dumps(metadata), FILES, "cfn-init-data")


def boto_config(metadata_url: str) -> str:
    """Return the configuration by which heat-cfntools finds the CloudFormation API."""
    url = urllib.parse.urlsplit(metadata_url)
    lines = (
        "[Boto]",
        "debug = 0",
        f"is_secure = {int(url.scheme == 'https')}",
        "https_validate_certificates = 1",
        "cfn_region_name = heat",
        f"cfn_region_endpoint = {url.hostname or ''}",
    )
    return "\n".join(lines)
