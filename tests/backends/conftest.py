"""Tests of one database each, beside the contract that all of them keep."""

from tests.contract.conftest import clock as clock
from tests.contract.conftest import endpoint as endpoint
