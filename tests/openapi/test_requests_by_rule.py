"""Requests that are made from the server's description by rule, some dozens for each operation."""

import schemathesis
from schemathesis.specs.openapi import checks

from tests.openapi.described import check, described, few
from tests.server.serving import Running

schema = described(by_rule=True)


@schema.parametrize()
@few
def test_without_keys_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, open_server: Running
) -> None:
    check(case, open_server.url, {})


@schema.parametrize()
@few
def test_with_a_key_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, locked_server: tuple[Running, str], as_ada: dict[str, str]
) -> None:
    check(case, locked_server[0].url, as_ada, checks.ignored_auth)
