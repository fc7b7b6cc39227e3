"""Faults of a service that knows idempotency keys, as its clients and the service see them."""

import pytest
import requests
from harness.fault_proxy import Fault, FaultProxy
from harness.scripted_service import Answer, serving


@pytest.mark.parametrize(
    ("fault", "status", "count"),
    [(Fault.DENIED, 401, 0), (Fault.TIMED_OUT, 504, 1), (Fault.TWICE, 200, 2), (Fault.HALF, None, 1)],
)
def test_a_fault_is_what_it_says(fault: Fault, status: int | None, count: int) -> None:
    with serving() as service:
        service.answers["PUT /items/1"] = Answer(body={"id": "1"})
        proxy = FaultProxy(service.url, seed=1, share=1.0, hangs=0.1, faults=[fault])
        proxy.faulty.set()
        try:
            answer = requests.put(f"{proxy.url}/items/1", json={}, timeout=60)
        except requests.RequestException:
            assert status is None
        else:
            assert answer.status_code == status
        proxy.calm()
        assert len(service.requests) == count
        assert requests.put(f"{proxy.url}/items/1", json={}, timeout=60).json() == {"id": "1"}
        proxy.close()
