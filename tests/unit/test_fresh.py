"""Settings that `make fresh` gives to the new machine, and its refusal where it can make none."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def load_registries() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("registries", ROOT / "tools" / "fresh" / "registries.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


registries = load_registries()


def test_pip_has_the_settings_of_registries_and_no_others() -> None:
    listed = (
        ":env:.cert='/own.pem'\n:env:.no-cache-dir='1'\nglobal.cert='/old.pem'\n"
        "global.extra-index-url='https://one/simple\\nhttps://two/simple'\nglobal.user='true'\n"
        "install.find-links='/wheels'\nfreeze.timeout='10'\n"
    )
    assert registries.pip_settings(listed, {"HTTPS_PROXY": "http://proxy:3128"}) == {
        "cert": "/own.pem",
        "extra-index-url": "https://one/simple\nhttps://two/simple",
        "find-links": "/wheels",
        "proxy": "http://proxy:3128",
    }


def test_npm_has_the_settings_of_registries_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_TOKEN", "secret")
    texts = [
        "registry = https://old/\nfund=false\n; cafile=/comment\n",
        "registry=https://npm/\n@acme:registry=https://acme/\n//npm/:_authToken=${OWN_TOKEN}\nyes=false\n",
    ]
    assert registries.npm_settings(texts, {"npm_config_strict_ssl": "false", "npm_config_yes": "true"}) == {
        "registry": "https://npm/",
        "@acme:registry": "https://acme/",
        "//npm/:_authToken": "secret",
        "strict-ssl": "false",
    }


def test_certificates_of_a_variable_become_a_setting_of_npm() -> None:
    assert registries.npm_settings([], {"NODE_EXTRA_CA_CERTS": "/own.pem"}) == {"cafile": BUNDLE}
    assert registries.npm_settings([], {}) == {}


def certificate(content: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----"


def test_each_certificate_that_the_new_machine_lacks_is_given_to_it_once() -> None:
    ours, also_ours, theirs = map(certificate, ("OURS", "ALSO\nOURS", "THEIRS"))
    bundles = [f"# a name\n{ours}\n{theirs}\n", f"{also_ours}\n{ours}\n"]
    assert registries.certificates(bundles, f"{theirs}\n") == [ours, also_ours]


def test_folders_that_settings_name_are_mounted_and_a_mirror_with_its_packages(
    tmp_path: pathlib.Path,
) -> None:
    for name in ("pypi/simple", "pypi/files", "wheels dir"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "constraints.txt").touch()
    index, links = (tmp_path / "pypi" / "simple").as_uri(), (tmp_path / "wheels dir").as_uri()
    values = [f"https://pypi.org/simple\n{index} {links}", f"{tmp_path}/constraints.txt", "//npm/:x", "true"]
    assert registries.mirrors(registries.paths(values)) == {tmp_path / "pypi", tmp_path / "wheels dir"}


def test_the_new_machine_has_one_bundle_and_the_files_that_settings_name(tmp_path: pathlib.Path) -> None:
    root, constraints = tmp_path / "root", tmp_path / "constraints.txt"
    (root / "etc").mkdir(parents=True)
    (root / "root").mkdir()
    constraints.write_text("that<=2\n")
    machine = registries.Machine(root)
    machine.write_pip({"cert": "/own.pem", "constraint": str(constraints)})
    machine.write_npm({"cafile": "/own.pem", "registry": "https://npm/"}, pathlib.PurePath("root"))
    assert machine.copy_named() == set()
    assert (root / "etc/pip.conf").read_text().split() == [
        *("[global]", "cert", "=", BUNDLE),
        *("constraint", "=", str(constraints)),
    ]
    assert (root / "root/.npmrc").read_text() == f"cafile={BUNDLE}\nregistry=https://npm/\n"
    assert root.joinpath(*constraints.parts[1:]).read_text() == "that<=2\n"


@pytest.mark.parametrize(
    ("user", "reason"), [("1000", "run it as root"), ("0", "mmdebstrap is not installed")]
)
def test_a_machine_on_which_none_can_be_made_fails_with_the_reason(
    tmp_path: pathlib.Path, user: str, reason: str
) -> None:
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    program = tmp_path / "id"
    program.write_text(f"#!{tmp_path}/bash\necho {user}\n")
    program.chmod(0o755)
    command = ["/bin/bash", ROOT / "tools" / "fresh" / "run", "bookworm"]
    done = subprocess.run(command, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("make fresh: ")
    assert reason in done.stderr
