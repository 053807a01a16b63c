"""The proxy and the service of the documentation: a real nginx in front of a server, and the unit of systemd."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from httpx import Client

from discreet.serve.http.app import create_app
from discreet.serve.http.settings import Limits, RateLimit
from discreet.serve.open import TableBuilder
from tests.fuzz.commands import commands
from tests.serve.http.conftest import running, settings_in
from tests.waiting import PATIENCE, until

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "table-builder-behind-a-proxy.md"
BLOCKS = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SITE = next(block for block in BLOCKS if "proxy_pass" in block)
UNIT = next(block for block in BLOCKS if "[Unit]" in block)
NAME = "tables.example.org"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
NOT_HERE = "{} is not installed: the page's {} is not tested; .ci/system-packages installs it"


def test_the_unit_has_options_that_exist_and_names_for_checks_on_the_machine() -> None:
    (start,) = re.findall(r"^ExecStart=(.*?)$", UNIT.replace("\\\n", ""), re.MULTILINE)
    _, command, *words = shlex.split(start)
    options = [word for word in words if word.startswith("--")]
    assert command == "serve"
    assert set(options) <= {option.removesuffix("=") for option in commands()["serve"]} | {"--workers"}
    assert "127.0.0.1" in words[words.index("--hosts") + 1].split(",")  # the target of the page's Prometheus
    assert "PrivateTmp=yes" in UNIT  # the files of metrics that workers share


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason=NOT_HERE.format("systemd-analyze", "unit of systemd")
)
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = UNIT.replace("/srv/census/.venv/bin/discreet", sys.executable).replace("User=discreet\n", "")
    assert said_of(tmp_path / "tables.service", unit) == []
    wrong = unit.replace("PrivateTmp=yes", "PrivateTmp=perhaps").replace("UMask", "Umaks")
    assert len(said_of(tmp_path / "wrong.service", wrong)) == 2  # it does look at each line


def said_of(path: Path, unit: str) -> list[str]:
    """What systemd has to say about a unit; units of this machine that it belongs to are not ours."""
    path.write_text(unit)
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False
    )
    return [line for line in found.stderr.splitlines() if path.name in line]


def certificate(folder: Path) -> None:
    """Write a certificate for the name, signed by its own key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "tables.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "tables.key").write_bytes(content)


@contextmanager
def nginx(folder: Path, server: str) -> Iterator[str]:
    """The proxy of the page, on a free port of the loopback interface."""
    certificate(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    site = SITE.replace("listen 443 ssl", f"listen {address} ssl")
    site = site.replace("/etc/ssl", str(folder)).replace("http://127.0.0.1:8000", server)
    paths = " ".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    logs = f"access_log {folder}/access.log;"
    main = f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{}}"
    user = "" if os.geteuid() else "user root;"  # another one cannot read the folder
    (folder / "nginx.conf").write_text(f"{user} {main}\nhttp {{ {logs} {paths}\n{site} }}\n")
    assert NGINX is not None
    started = subprocess.Popen([NGINX, "-c", folder / "nginx.conf"], stderr=subprocess.PIPE)
    try:
        until(lambda: (folder / "pid").exists() or started.poll() is not None)
        assert started.poll() is None, (folder / "error.log").read_text()
        yield f"https://{address}"
    finally:
        started.terminate()
        started.communicate(timeout=PATIENCE)


@pytest.mark.skipif(NGINX is None, reason=NOT_HERE.format("nginx", "proxy"))
def test_a_server_behind_the_proxy_of_the_page(builder: TableBuilder, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, hosts=(NAME, "127.0.0.1"), limits=Limits(public=RateLimit(4, 1_000)))
    with (
        running(create_app(builder, settings), proxies="127.0.0.1") as server,
        nginx(tmp_path, server) as proxy,
        Client(base_url=proxy, headers={"Host": NAME}, verify=False, timeout=PATIENCE) as client,
    ):
        answer = client.post("/api/v1/table", json={"axes": ["SEX"]})
        assert answer.status_code == 200
        assert answer.json()["value"]
        assert answer.headers["strict-transport-security"].startswith(
            "max-age="
        )  # the proxy's scheme is believed
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert client.get("/health", headers={"Host": "other.example"}).status_code == 400
        too_large = client.post("/api/v1/table", content=b"x" * (2 << 20))
        assert too_large.status_code == 413  # by nginx, before it reaches the server
        # the address that a client states is replaced by the proxy: the rate is that of one user
        given = [{"X-Forwarded-For": f"203.0.113.{n}"} for n in range(6)]
        said = [client.get("/api/v1/catalogue", headers=header).status_code for header in given]
        assert said.count(200) == 3
        assert said[-1] == 429
        assert client.get("/health").status_code == 200
