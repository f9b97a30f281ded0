"""Commands over TCP with TLS and a password: they work, and each refusal is one clear error without a secret."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from gaia_sessions.postgres.connections import server_of
from tests.cli.conftest import everything_in
from tests.cli.forks import forked, until
from tests.roles import OWNER, url_of
from tests.secured import SECRET, SecuredServer
from tests.servers import check_installed
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Gaia

OTHER_ROLES = {
    "expired_worker": f"LOGIN PASSWORD '{SECRET}' VALID UNTIL '2020-01-01'",
    "locked_worker": f"NOLOGIN PASSWORD '{SECRET}'",
    "busy_worker": f"LOGIN PASSWORD '{SECRET}' CONNECTION LIMIT 0",
    "new_worker": f"LOGIN PASSWORD '{SECRET}'",
}
CERTIFICATE = "if the server has a certificate of your own issuer, write that of the issuer to ~/.postgresql/root.crt; "
CERTIFICATE += "if it has expired, its administrator must renew it"
PASSWORD = "write the right password in ~/.pgpass or the service file, or set PGPASSWORD; if it is right, "  # noqa: S105
PASSWORD += "ask an administrator whether the role exists and has expired"
NO_PASSWORD = "write the password in ~/.pgpass, which only you may read, or set PGPASSWORD"  # noqa: S105
ROOT = "write the file with the certificate of the issuer: sslrootcert=FILE in the URL"
WRONG = {"PGPASSWORD": f"not-{SECRET}"}
MORE_CONNECTIONS = (
    "try again later; if it happens often, an administrator must allow more connections, or set up a pooler"
)
KEY = "&sslcert=TLS/ca.crt&sslkey=TLS/"

REFUSALS: list[tuple[tuple[str, str], dict[str, str], str, str]] = [
    (("ca.crt", "other.crt"), {}, "certificate verify failed", CERTIFICATE),
    (("&sslrootcert=TLS/ca.crt", ""), {}, "certificate verify failed", CERTIFICATE),
    (
        ("localhost", "127.0.0.1"),
        {},
        'server certificate for "localhost" (and 1 other name) does not match host name "127.0.0.1"',
        "write the host in the URL as its certificate names it",
    ),
    (("ca.crt", "none.crt"), {}, 'root certificate file "TLS/none.crt" does not exist', ROOT),
    (("ca.crt", "ca.key"), {}, 'could not read root certificate file "TLS/ca.key": no certificate or crl found', ROOT),
    (
        ("ca.crt", f"ca.crt{KEY}none.key"),
        {},
        'certificate present, but not private key file "TLS/none.key"',
        "name the files of your own certificate: sslcert=FILE and sslkey=FILE in the URL",
    ),
    (
        ("ca.crt", f"ca.crt{KEY}other.key"),
        {},
        'could not load private key file "TLS/other.key": key values mismatch',
        "name the files of your own certificate: sslcert=FILE and sslkey=FILE in the URL",
    ),
    (
        ("verify-full", "disable"),
        {},
        'no pg_hba.conf entry for host "127.0.0.1", user "gaia_worker", database "agents", no encryption',
        "an administrator must allow this connection in pg_hba.conf of the server",
    ),
    (("", ""), WRONG, 'password authentication failed for user "gaia_worker"', PASSWORD),
    (("", ""), {"PGPASSWORD": "", "PGPASSFILE": "TLS/pgpass"}, "password authentication failed", PASSWORD),
    (("", ""), {"PGPASSWORD": ""}, "no password supplied", NO_PASSWORD),
    (
        ("", ""),
        {"PGREQUIREAUTH": "md5"},
        'authentication method requirement "md5" failed',
        "correct require_auth in the URL or in PGREQUIREAUTH",
    ),
    (("gaia_worker", "expired_worker"), {}, 'password authentication failed for user "expired_worker"', PASSWORD),
    (("gaia_worker", "nobody"), {}, 'password authentication failed for user "nobody"', PASSWORD),
    (
        ("gaia_worker", "locked_worker"),
        {},
        'role "locked_worker" is not permitted to log in',
        "ask an administrator to type: ALTER ROLE NAME LOGIN",
    ),
    (("gaia_worker", "busy_worker"), {}, 'too many connections for role "busy_worker"', MORE_CONNECTIONS),
    (
        ("gaia_worker", "new_worker"),
        {},
        "permission denied for schema gaia_sessions",
        "to see the rights that this role lacks, type: gaia-sessions --root 'URL' doctor",
    ),
    (
        ("/agents", "/private"),
        {},
        'permission denied for database "private"',
        "ask an administrator to type: GRANT CONNECT ON DATABASE NAME TO ROLE",
    ),
    (("/agents", "/crowded"), {}, 'too many connections for database "crowded"', MORE_CONNECTIONS),
    (
        ("/agents", "/none"),
        {},
        'database "none" does not exist',
        "correct the URL, or make the database and the role: createdb, createuser",
    ),
]
"""What is replaced in the URL, the variables of the environment, what the error says, and the hint."""


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredServer]:
    check_installed()
    server = SecuredServer()
    for name, options in OTHER_ROLES.items():
        server.execute(f"CREATE ROLE {name} {options}")
    server.execute("GRANT CONNECT ON DATABASE agents TO new_worker, busy_worker")
    server.execute("CREATE DATABASE private")
    server.execute("REVOKE CONNECT ON DATABASE private FROM PUBLIC")
    server.execute("CREATE DATABASE crowded CONNECTION LIMIT 0")
    passwords = Path(server.tls, "pgpass")
    passwords.write_text(f"*:*:*:*:not-{SECRET}\n", encoding="utf-8")
    passwords.chmod(0o600)
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.delenv("PGPASSFILE", raising=False)


def refusal(gaia: Gaia, url: str, *, may_pass: bool = False) -> tuple[str, str]:
    """What ``list`` says and hints at this URL; as JSON, it says the same. Only what may pass is tried again."""
    server_of(url).close_idle()
    words = "--root", url, "list", "--lock-timeout", "0" if may_pass else "60"
    code, said, hint = gaia(*words).refusal
    answer = gaia(*words, "--json")
    error = answer.error
    assert (code, error["message"], error["hint"]) == (answer.code, said, hint)
    examined = gaia("--root", url, "doctor", "--verbose")
    assert (code, examined.code, SECRET in f"{said}{hint}{error}{examined}") == (8, 1, False)
    return said, hint


def test_commands_work_with_a_password_over_a_verified_connection(
    gaia: Gaia, secured: SecuredServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = secured.worker_url
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
    assert gaia("create", "--id", "asks").code == 0
    assert gaia("update", "asks", "--phase", "planning").code == 0
    ended = forked("run", "--id", "work", "--", "sh", "-c", "echo ${PGPASSWORD-none} $GAIA_SESSIONS_ROOT")
    assert (ended.code, gaia("report", "work", "--output").out) == (0, f"none {url}\n".encode())
    assert {one["agent_id"] for one in gaia("list", "--json").json} == {"asks", "work"}
    with psycopg.connect(url) as connection:
        used = connection.execute("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchall()
    assert used == [("TLSv1.3",)]


@table(("change", "environment", "says", "hint"), REFUSALS)
def test_a_connection_that_is_refused_is_one_error_that_says_what_to_do_and_no_secret(
    gaia: Gaia,
    secured: SecuredServer,
    away_from_home: Path,
    change: tuple[str, str],
    environment: dict[str, str],
    says: str,
    hint: str,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value.replace("TLS", secured.tls))
        url = secured.worker_url.replace(secured.tls, "TLS").replace(*change).replace("TLS", secured.tls)
        said, advice = refusal(gaia, url, may_pass=hint == MORE_CONNECTIONS)
    assert (says.replace("TLS", secured.tls) in said, advice) == (True, hint.replace("URL'", f"{url}'")), said
    assert SECRET not in str(everything_in(away_from_home))


def test_a_wrong_password_in_a_service_file_is_shown_by_no_error(
    gaia: Gaia, secured: SecuredServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    options = f"user=gaia_worker\ndbname=agents\nhost=localhost\nport={secured.port}\npassword=not-{SECRET}\n"
    tls = f"sslmode=verify-full\nsslrootcert={secured.tls}/ca.crt\n"
    services = tmp_path / "services"
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    url = "postgresql:///?service=agents"
    for text, says, advice in (
        (f"[agents]\n{options}{tls}", 'password authentication failed for user "gaia_worker"', PASSWORD),
        (f"[agents]\n{options}not-{SECRET}\n", "syntax error in service file", "write the service in ~/.pg_service"),
        (f"[others]\n{options}", 'definition of service "agents" not found', "write the service in ~/.pg_service"),
    ):
        services.write_text(text, encoding="utf-8")
        said, hint = refusal(gaia, url)
        assert (says in said, hint.startswith(advice)) == (True, True), (said, hint)


@table(
    "settings, says, hint",
    [
        ({"ssl_cert_file": "expired.crt", "ssl_key_file": "expired.key"}, "certificate verify failed", CERTIFICATE),
        (
            {"ssl": "off"},
            "server does not support SSL, but SSL was required",
            "the server has no TLS: its administrator must set it up",
        ),
    ],
)
def test_an_expired_certificate_and_a_server_without_tls_are_refused(
    gaia: Gaia, secured: SecuredServer, settings: dict[str, str], says: str, hint: str
) -> None:
    of_files = {name: f"{secured.tls}/{value}" if "file" in name else value for name, value in settings.items()}
    url = secured.worker_url.replace("ca.crt", "other.crt")  # the issuer of the certificate that has expired
    with secured.settings(**of_files):
        said, advice = refusal(gaia, url)
    assert (says in said, advice) == (True, hint), said


def test_a_server_that_has_no_connection_left_says_so(gaia: Gaia, secured: SecuredServer) -> None:
    others = "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    with ExitStack() as stack:
        watching = stack.enter_context(psycopg.connect(secured.url, autocommit=True))
        until(lambda: not watching.execute(others).fetchall())  # else one that ends makes room
        with suppress(psycopg.OperationalError):
            while True:
                stack.enter_context(psycopg.connect(url_of(secured, OWNER)))
        said, hint = refusal(gaia, secured.worker_url, may_pass=True)
    assert ("remaining connection slots are reserved" in said, hint) == (True, MORE_CONNECTIONS), said


def test_tables_of_a_later_version_are_refused(gaia: Gaia, secured: SecuredServer) -> None:
    url = secured.worker_url + "&application_name=later"  # the tables were not checked yet with this URL
    with psycopg.connect(secured.url.replace("/postgres?", "/agents?"), autocommit=True) as connection:
        connection.execute("INSERT INTO gaia_sessions.migration (version) VALUES (99)")
        said, hint = refusal(gaia, url)
        connection.execute("DELETE FROM gaia_sessions.migration WHERE version = 99")
    assert (
        said == f"{url}: cannot use the tables: its tables have version 99, and this gaia-sessions knows only version 1"
    )
    assert hint == "install a later version of gaia-sessions"
