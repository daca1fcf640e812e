"""Threads are as many as asked for inside, and as many as before afterwards."""

from __future__ import annotations

import threading

import torch
from threadpoolctl import threadpool_info

from sfumato.linalg.threads import one_thread, side_by_side, thread_share, torch_threads


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def test_small_work_takes_one_thread() -> None:
    before = torch.get_num_threads(), blas_threads()
    with one_thread(), torch_threads(1):
        assert set(blas_threads()) == {1}
        assert torch.get_num_threads() == 1
    assert (torch.get_num_threads(), blas_threads()) == before


def test_threads_are_as_before_whoever_leaves_last() -> None:
    before = torch.get_num_threads(), blas_threads()
    first_is_in, second_has_left, seen = threading.Event(), threading.Event(), []

    def first() -> None:
        with thread_share(3):
            first_is_in.set()
            assert second_has_left.wait(20)
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    other = threading.Thread(target=first)
    other.start()
    assert first_is_in.wait(20)
    with thread_share(3):
        # some libraries that other tests have loaded know one thread only
        assert 3 in blas_threads()
        seen.append(torch.get_num_threads())
    second_has_left.set()
    other.join(20)
    assert seen == [3, 3, before[0]]
    assert (torch.get_num_threads(), blas_threads()) == before


def test_every_piece_is_worked_on_once_by_threads_of_one_thread() -> None:
    before = torch.get_num_threads(), blas_threads()
    pieces, threads = range(7), []

    def work(share: slice) -> list[int]:
        threads.append((threading.get_ident(), torch.get_num_threads()))
        return list(pieces[share])

    with torch_threads(3), thread_share(2):
        found = side_by_side(work, len(pieces))
        assert torch.get_num_threads() == 2
    assert sorted(number for share in found for number in share) == list(pieces)
    assert len(found) == 2
    assert {count for _, count in threads} == {1}
    assert threading.get_ident() not in dict(threads)
    assert (torch.get_num_threads(), blas_threads()) == before
