"""Who is served next."""

import random

from tests.conformance.backends import Backend, request, waiting


async def test_one_account_with_5000_waiting_does_not_hold_up_another(backend: Backend) -> None:
    """A single request of another account comes within the first three."""
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(*(request(1) for _ in range(5000))))
    await worker.take(10, wait_s=0)
    single = request(2)
    await gateway.enqueue(waiting(single))
    order = [taken.request.id for taken in await worker.take(3, wait_s=0)]
    assert single.id in order


async def test_two_busy_accounts_share_the_queue_evenly(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(*(request(1) for _ in range(300))))
    await gateway.enqueue(waiting(*(request(2) for _ in range(300))))
    accounts = [taken.request.account for taken in await worker.take(100, wait_s=0)]
    assert 45 <= accounts.count(1) <= 55


async def test_a_share_goes_by_cost_so_dear_requests_come_less_often(backend: Backend) -> None:
    """At four times the cost an account gets a quarter of the places: that is what a priority is."""
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(*(request(1) for _ in range(200)), cost=4.0))
    await gateway.enqueue(waiting(*(request(2) for _ in range(200)), cost=1.0))
    accounts = [taken.request.account for taken in await worker.take(100, wait_s=0)]
    assert 75 <= accounts.count(2) <= 85


async def test_one_account_is_served_in_the_order_of_its_requests(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    requests = [request(1) for _ in range(50)]
    for one in requests:
        await gateway.enqueue(waiting(one))
    assert [taken.request.id for taken in await worker.take(50, wait_s=0)] == [one.id for one in requests]


async def test_an_account_that_was_idle_gains_no_credit(backend: Backend) -> None:
    """Who was away is served alternately with who was there, not ahead of all of it."""
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(*(request(1) for _ in range(200))))
    await worker.take(100, wait_s=0)
    await gateway.enqueue(waiting(*(request(2) for _ in range(100))))
    accounts = [taken.request.account for taken in await worker.take(40, wait_s=0)]
    assert 18 <= accounts.count(2) <= 22


async def test_under_endless_load_the_sweep_changes_nobodys_place(backend: Backend) -> None:
    """Tags that are dropped were in the past, so the order with sweeps is the order without."""
    draw = random.Random(3)
    requests = [request(draw.randint(1, 40)) for _ in range(600)]
    orders = []
    for pool, swept in (("swept", True), ("not", False)):
        gateway, worker, settler = backend.gateway(pool), backend.worker(pool), backend.settler()
        order = []
        for start in range(0, 600, 20):
            await gateway.enqueue(waiting(*requests[start : start + 20]))
            order += [taken.request.id for taken in await worker.take(15, wait_s=0)]
            if swept:
                await settler.sweep(pool, 3)
        orders.append(order)
    assert orders[0] == orders[1]


async def test_putting_in_twice_changes_nothing(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    queued, leased = request(), request()
    await gateway.enqueue(waiting(leased))
    await worker.take(1, wait_s=0)
    await gateway.enqueue(waiting(queued))
    assert await gateway.enqueue(waiting(queued, leased)) == 1
    assert [taken.request.id for taken in await worker.take(9, wait_s=0)] == [queued.id]


async def test_position_and_depth_are_exact(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    requests = [request(1) for _ in range(5)]
    for one in requests:
        await gateway.enqueue(waiting(one))
    assert [(await gateway.standing(one.id)).position for one in requests] == [0, 1, 2, 3, 4]
    await worker.take(2, wait_s=0)
    assert [(await gateway.standing(one.id)).state for one in requests] == ["leased"] * 2 + ["queued"] * 3
    assert (await gateway.standing(requests[2].id)).position == 0
    assert (await gateway.standing(request().id)).state == "absent"
    depth = await gateway.depth()
    assert (depth.waiting, depth.leased, depth.settling) == (3, 2, 0)


async def test_a_place_is_told_before_a_request_is_put_in(backend: Backend) -> None:
    """It is the place that the request then has, for an account with much before it and for one with nothing."""
    gateway, worker = backend.gateway(), backend.worker()
    assert await gateway.place(1, 1.0) == 0
    await gateway.enqueue(waiting(*(request(1) for _ in range(40))))
    await worker.take(5, wait_s=0)
    for account, cost in ((1, 1.0), (2, 1.0), (3, 10.0)):
        told = await gateway.place(account, cost)
        newcomer = request(account)
        await gateway.enqueue(waiting(newcomer, cost=cost))
        standing = await gateway.standing(newcomer.id)
        assert abs(standing.position - told) <= 1, (account, told, standing)  # of equals, the id decides
