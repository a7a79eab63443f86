import pytest
from tests.tables.cases import CONTAINERS


@pytest.fixture(params=CONTAINERS)
def container(request):
    return request.param
