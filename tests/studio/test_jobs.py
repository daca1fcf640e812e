"""Jobs: the newest request wins, cancelled work ends and leaves nothing, errors become sentences."""

from __future__ import annotations

import threading

from sfumato import InputError
from sfumato.studio.jobs import Job

SOON = 10.0


def job() -> Job[int]:
    return Job("test", lambda: None)


def test_work_is_done_behind_and_says_how_far_it_is():
    one, go = job(), threading.Event()

    def work(step):
        step("half of it", 0.5)
        assert go.wait(SOON)
        return 7

    one.start(work, "key")
    while one.share is None:
        pass
    assert (one.state, one.stage, one.share, one.value) == ("running", "half of it", 0.5, None)
    go.set()
    assert one.wait(SOON)
    assert (one.state, one.value, one.key, one.share) == ("done", 7, "key", None)


def test_of_many_requests_only_the_first_and_the_newest_are_worked_on():
    one, begun, go, done = job(), threading.Event(), threading.Event(), []

    def work(number):
        def do(step):
            begun.set()
            assert go.wait(SOON)
            done.append(number)
            return number

        return do

    one.start(work(0), lets_finish=True)
    assert begun.wait(SOON)
    for number in range(1, 20):
        one.start(work(number), lets_finish=True)
    go.set()
    assert one.wait(SOON)
    assert (one.value, done) == (19, [0, 19])


def test_what_is_replaced_ends_at_its_next_sign_and_leaves_nothing():
    one, begun, go, ended = job(), threading.Event(), threading.Event(), threading.Event()

    def old(step):
        begun.set()
        try:
            assert go.wait(SOON)
            step("more", None)
        finally:
            ended.set()
        raise AssertionError("it went on")

    one.start(old)
    assert begun.wait(SOON)
    one.start(lambda step: 2)
    go.set()
    assert one.wait(SOON)
    assert ended.is_set()
    assert (one.state, one.value) == ("done", 2)


def test_cancelled_work_ends_and_its_result_is_not_kept():
    one, begun, go = job(), threading.Event(), threading.Event()

    def work(step):
        begun.set()
        assert go.wait(SOON)
        return 1  # it did not look up

    one.start(work)
    assert begun.wait(SOON)
    one.cancel()
    assert one.state == "cancelled"
    go.set()
    one.start(lambda step: 2)
    assert one.wait(SOON)
    assert one.value == 2
    one.reset()
    assert (one.state, one.value) == ("idle", None)


def test_cancelled_work_leaves_nothing_of_the_older_request_that_it_let_finish():
    """Else the effect of one level would stand under the slider of another, and not be marked as old."""
    one, begun, go = job(), threading.Event(), threading.Event()

    def work(step):
        begun.set()
        assert go.wait(SOON)
        return 2

    one.start(lambda step: 1, "first")
    assert one.wait(SOON)
    one.start(work, "second", lets_finish=True)
    assert begun.wait(SOON)
    assert (one.state, one.value) == ("running", 1)
    one.cancel()
    assert (one.state, one.value) == ("cancelled", None)
    go.set()


def test_errors_become_sentences(capsys):
    def wrong(step):
        raise InputError("alpha is 2; it is a share.")

    def bug(step):
        raise KeyError("gone")

    one = job()
    one.start(wrong)
    assert one.wait(SOON)
    assert (one.state, one.error) == ("failed", "alpha is 2; it is a share.")
    one.start(bug)
    assert one.wait(SOON)
    assert "bug" in one.error
    assert "KeyError" in capsys.readouterr().err


def test_work_that_is_to_end_has_ended():
    begun, goes_on = threading.Event(), threading.Event()

    def work(step):
        begun.set()
        while True:
            step("going on", None)
            goes_on.wait(0.01)

    job = Job("x", lambda: None)
    job.start(work)
    assert begun.wait(5.0)
    assert job.end(5.0)
    assert job.state == "cancelled"
    job.start(work)
    assert not job.is_running
