"""Thousands of calls, calls within calls, and their remaining objects."""

import asyncio

import pytest

MODES = ["process", "shared", "thread"]
EVERY_MODE = [*MODES, "inline"]
DOUBLE = """
def execute(self, requests):
    return [respond(x_of(request) * 2) for request in requests]
"""
COUNT = """
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for number in range(int(x_of(request)[0])):
            sender.send(respond(np.array([number], np.float32)))
        sender.send(flags=1)
"""
TOGETHER = """
def execute(self, requests):  # answers when eight instances have a request
    barrier = threading.__dict__.setdefault("barrier_of_the_test", threading.Barrier(8))
    barrier.wait(20)
    return [respond(x_of(request)) for request in requests]
"""
THOUSAND = {
    "one after another, on a thread": """
def execute(self, requests):
    return [respond(sum(y_of(call("relay", x_of(r)).exec()) for _ in range(1000)))
            for r in requests]
""",
    "on a thousand threads": """
def execute(self, requests):
    found = []
    def one(x):
        found.append(y_of(call("relay", x).exec()))
    threads = [threading.Thread(target=one, args=(x_of(requests[0]),)) for _ in range(1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [respond(sum(found))]
""",
    "in one coroutine": """
async def execute(self, requests):
    x = x_of(requests[0])
    answers = await asyncio.gather(*[call("relay", x).async_exec() for _ in range(1000)])
    return [respond(sum(map(y_of, answers)))]
""",
    "to a decoupled model": """
async def execute(self, requests):
    x = x_of(requests[0])
    streams = await asyncio.gather(
        *[call("count", x * 0 + 2).async_exec(decoupled=True) for _ in range(1000)])
    async def summed(stream):
        return sum([y_of(answer) async for answer in stream])
    return [respond(sum(await asyncio.gather(*map(summed, streams))) * 2 * x)]
""",
}


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_awaited_calls_run_side_by_side(serve, mode):
    body = """
    async def execute(self, requests):
        x = x_of(requests[0])
        found = await asyncio.gather(*[call("together", x + n).async_exec() for n in range(8)])
        return [respond(np.concatenate([y_of(each) for each in found]))]
    """
    models = await serve(
        together=(TOGETHER, {"mode": "thread", "count": 8}),
        caller=(body, {"mode": mode}),
    )

    assert await models.ask("caller", 1) == [1 + n for n in range(8)]


async def test_threads_of_a_model_get_their_own_answers(serve):
    body = """
    def execute(self, requests):
        wrong = []

        def work(n):
            for i in range(30):
                if y_of(call("double", np.array([n, i], np.float32)).exec()).tolist() != [2 * n, 2 * i]:
                    wrong.append((n, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [respond(np.array([len(wrong)], np.float32))]
    """
    models = await serve(double=(DOUBLE, {"mode": "inline"}), caller=body)

    assert await models.ask("caller", 1) == [0]


@pytest.mark.parametrize("mode", MODES)
async def test_calls_may_be_nested_deeper_than_any_pool(serve, mode):
    body = """
    def execute(self, requests):
        model = f"level{int(pb_utils.get_model_dir().split('/level')[-1].split('/')[0]) - 1}"
        return [respond(y_of(call(model, x_of(r)).exec()) + 1) for r in requests]
    """
    depth = 6 if mode == "process" else 40
    levels = {f"level{n}": (body, {"mode": mode}) for n in range(1, depth + 1)}
    models = await serve(level0=(DOUBLE, {"mode": "inline"}), **levels)

    answers = await asyncio.gather(*[models.ask(f"level{depth}", n) for n in range(20)])

    assert answers == [[2 * n + depth] for n in range(20)]


@pytest.mark.parametrize("way", THOUSAND)
async def test_a_thousand_calls_that_call_again_finish(serve, way):
    relay = """
    async def execute(self, requests):
        return [respond(y_of(await call("double", x_of(r)).async_exec())) for r in requests]
    """
    models = await serve(
        double=(DOUBLE, {"mode": "inline"}),
        relay=(relay, {"mode": "inline"}),
        count=(COUNT, {"mode": "thread", "decoupled": True}),
        caller=THOUSAND[way],
    )

    assert await models.ask("caller", 3) == [6000]


async def test_a_thousand_calls_pass_through_children_that_call_children(serve):
    relay = """
    def execute(self, requests):
        return [respond(y_of(call("double", x_of(r)).exec())) for r in requests]
    """
    models = await serve(double=DOUBLE, relay=relay, caller=THOUSAND["in one coroutine"])

    assert await models.ask("caller", 3) == [6000]


async def test_no_region_is_left_when_all_calls_are_over(serve):
    body = """
    def execute(self, requests):
        x = np.ones(int(x_of(requests[0])[0]), np.float32)
        for _ in range(100):
            y_of(call("double", x).exec())
            call("nowhere", x).exec()
            for response in call("many", x).exec(decoupled=True):
                break
        del response
        gc.collect()
        time.sleep(0.3)  # what the dropped calls still send arrives with the next
        call("double", x).exec()
        from backend_python.api import host
        return [respond(np.array([host._process._connection._out.used], np.float32))]
    """
    many = """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for _ in range(5):
                sender.send(respond(x_of(request)))
            sender.send(flags=1)
    """
    models = await serve(
        double=DOUBLE, many=(many, {"decoupled": True, "mode": "thread"}), caller=body
    )

    for size in (100, 100_000):
        (in_child,) = await models.ask("caller", size)
        assert in_child <= 2  # of the last call, released with the next message
        assert models.child("caller").inputs.used <= 1
