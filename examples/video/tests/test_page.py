"""The page of the plugin with a server that the test plays: what it shows when no more events come."""

import json

EVENT = {
    "video": "hall",
    "dropped": 0,
    "gap": 0,
    "notice": "",
    "ms": 5.0,
    "tracks": [],
}


def test_the_page_shows_no_rate_of_a_dead_camera_and_asks_again_for_its_pictures(browser):
    import core_watch.routes

    asked = []
    answers = {
        "/watch": ("text/html", core_watch.routes._PAGE.read_text()),
        "/watch/videos": ("application/json", json.dumps([{"name": "hall", "trouble": ""}])),
        # The response ends, so the browser asks again, after the pause that is named here.
        "/watch/events": ("text/event-stream", f"retry: 1500\ndata: {json.dumps(EVENT)}\n\n"),
        "/watch/videos/hall/pictures": ("image/jpeg", ""),
    }

    def answer(route):
        path = route.request.url.partition("watch.test")[2]
        asked.append(path)
        kind, body = answers[path]
        if path == "/watch/events" and asked.count(path) > 2:
            return  # it does not answer
        route.fulfill(status=200, content_type=kind, body=body)

    page = browser.new_page()
    page.route("http://watch.test/**", answer)
    page.goto("http://watch.test/watch")
    page.wait_for_function("videos.get('hall')?.times.length > 0")
    page.wait_for_function("videos.get('hall').times.length === 0 && rate.textContent === '0'")

    while asked.count("/watch/videos/hall/pictures") < 2:
        page.wait_for_timeout(50)  # the browser goes on meanwhile

    assert asked.count("/watch/events") >= 2
    assert asked.count("/watch/videos/hall/pictures") == 2
