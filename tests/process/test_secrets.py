"""A user's secret is nowhere in clear on the disk: not in the database, not in a log."""

import pathlib
import re

import pytest
from client.serving import Service

FIRST = "planted-Qz7vKp-first"
SECOND = "planted-Xw3mRt-second"
CONFIG = "[DEFAULT]\ndebug = true\ndefault_log_levels = sqlalchemy=WARN\n"
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"password": {"type": "string", "hidden": True}, "plain": {"type": "string"}},
    "resources": {
        "user": {
            "type": "OS::Heat::TestResource",
            "properties": {"value": {"list_join": ["-", ["with", {"get_param": "password"}]]}},
            "metadata": {"told": {"get_param": "password"}},
        },
        "next": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["user", "output"]}}},
        "made": {"type": "OS::Heat::RandomString"},
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "aws": {"type": "AWS::CloudFormation::WaitConditionHandle"},
        "told": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "aws"}}},
        "policy": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": "none",
                "adjustment_type": "exact_capacity",
                "scaling_adjustment": 1,
            },
        },
    },
    "outputs": {
        "said": {"value": {"get_attr": ["next", "value"]}},
        "made": {"value": {"get_attr": ["made", "value"]}},
        "curl": {"value": {"get_attr": ["handle", "curl_cli"]}},
        "aws": {"value": {"get_attr": ["told", "value"]}},
        "policy": {"value": {"get_attr": ["policy", "alarm_url"]}},
    },
}


@pytest.mark.commit
def test_a_planted_secret_is_stored_nowhere_in_clear(tmp_path: pathlib.Path) -> None:
    config = tmp_path / "debug.conf"
    config.write_text(CONFIG)
    service = Service(tmp_path, config=config)
    parameters = {"password": FIRST, "plain": "planted-in-the-open"}
    path = service.created("t", "sealed", TEMPLATE, parameters=parameters)
    outputs = _outputs(service, path)
    assert outputs["said"] == f"with-{FIRST}", "the secret was used, or this test would prove nothing"

    urls = [re.findall("http[^']*", outputs[name])[-1] for name in ("curl", "aws", "policy")]
    signatures = [url.partition("Signature=")[2] for url in urls]
    assert len(set(signatures) - {""}) == 3
    body = {"UniqueId": "1", "Status": "SUCCESS", "Reason": "", "Data": ""}
    sent = [{"status": "SUCCESS"}, body, {}]
    assert [service.call("POST", *pair).status for pair in zip(urls, sent, strict=True)] == [200, 200, 404]
    assert service.call("POST", urls[0], {"status": "neither"}).status == 400

    answer = service.call(
        "PUT", path, {"template": TEMPLATE, "parameters": {**parameters, "password": SECOND}}
    )
    assert answer.status == 202, answer
    assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    assert _outputs(service, path)["said"] == f"with-{SECOND}"
    # Refused ones, whose errors are logged and returned.
    for template in (
        {
            **TEMPLATE,
            "resources": {"bad": {"type": "OS::Heat::TestResource", "properties": {"wait_secs": _PARAM}}},
        },
        {**TEMPLATE, "outputs": {"bad": {"value": {"get_attr": [_PARAM, "x"]}}}},
    ):
        body = {"stack_name": "refused", "template": template, "parameters": parameters}
        refused = service.call("POST", "/v1/t/stacks", body)
        assert refused.status == 400, refused
        assert FIRST not in str(refused.body)
    for part in ("", "/events", "/resources", "/environment"):
        body = service.get(f"{path}{part}")
        body.get("stack", {}).pop("outputs", None)
        answer_text = str(body)
        assert FIRST not in answer_text
        assert SECOND not in answer_text
        assert not [signature for signature in signatures if signature in answer_text]
    service.stop()

    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    everything = {file: file.read_bytes() for file in files}
    assert any(b"planted-in-the-open" in text for text in everything.values()), "the database was read"
    assert any(b" DEBUG " in text for text in everything.values()), "the log was read"
    for secret in (FIRST, SECOND, outputs["made"], *signatures):
        leaks = [str(file) for file, text in everything.items() if secret.encode() in text]
        assert not leaks, f"{secret} is stored in {leaks}"


_PARAM = {"get_param": "password"}


def _outputs(service: Service, path: str) -> dict[str, str]:
    outputs = service.get(path)["stack"]["outputs"]
    return {output["output_key"]: output["output_value"] for output in outputs}
