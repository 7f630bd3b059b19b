"""Threads when parts fail, and when the program ends."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from src.core.fast import threads

LATE = """
import threading, time
from src.core.fast import threads
threads.count = lambda: 2
done = []

def work():
    {before}
    threading.main_thread().join()
    time.sleep(0.1)
    threads.share([lambda: done.append(1)] * 5, work=10**9)
    print(len(done))

threading.Thread(target=work).start()
"""


@pytest.mark.parametrize("before", ["pass", "threads.share([lambda: None] * 5, work=10**9)"])
def test_a_thread_that_outlives_the_program_works_alone(before):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LATE.format(before=before)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert run.stdout == "5\n", run.stderr


def test_after_an_error_no_part_is_still_at_work(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 3)
    threads._pool.cache_clear()
    try:
        for _ in range(6):  # which thread takes which part is left to chance
            begun, finished = threading.Barrier(3), []

            def fail(begun=begun):
                begun.wait(10)
                raise ValueError("in a part")

            def slow(begun=begun, finished=finished):
                begun.wait(10)
                time.sleep(0.05)
                finished.append(1)

            with pytest.raises(ValueError, match="in a part"):
                threads.share([lambda begun=begun: begun.wait(10), fail, slow], work=10**9)
            assert finished == [1]
    finally:
        threads._pool.cache_clear()


def test_large_tasks_run_at_once_and_each_alone(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 2)
    threads._pool.cache_clear()
    try:
        both = threading.Barrier(2)

        def task():
            both.wait(10)  # only if the other one runs too
            return threading.get_ident(), threads.worth_sharing(10**9), np.geterr()["over"]

        with np.errstate(over="ignore"):
            (one, *first), (other, *second) = threads.run_apart([task, task])
        assert one != other and first == second == [False, "ignore"] and threads.worth_sharing(10**9)
        assert threads.run_apart([lambda: threads.worth_sharing(10**9)]) == [True]
    finally:
        threads._pool.cache_clear()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is forked")
def test_a_forked_process_has_threads_of_its_own():
    program = """
import os
from src.core.fast import threads
threads.count = lambda: 2
threads.run_apart([lambda: None] * 2)
child = os.fork()
if child == 0:
    import threading
    both = threading.Barrier(2)
    threads.run_apart([lambda: both.wait(10)] * 2)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert run.stdout == "7\n", run.stderr


BLAS = """
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from src.core import Linear, Tensor
from src.gpt import GPT
threadpool_limits(2, user_api="blas")
{operation}
print({{each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}})
"""


@pytest.mark.parametrize("operation", ["Linear(4, 4)(Tensor(np.ones((2, 4))))", "GPT(5, 4, 8, 1)(Tensor([[1, 2]]))"])
@pytest.mark.parametrize(("threads_of_ours", "of_blas"), [("2", "{1}"), ("1", "{2}")])
def test_blas_is_held_at_one_thread_from_the_first_operation_on(operation, threads_of_ours, of_blas):
    settings = {"PYTHONPATH": os.pathsep.join(sys.path), "ENGINE_THREADS": threads_of_ours}
    run = subprocess.run(
        [sys.executable, "-c", BLAS.format(operation=operation)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == of_blas, run.stderr
