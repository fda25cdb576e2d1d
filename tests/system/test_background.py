import threading
from concurrent.futures import CancelledError

import jax
import pytest

from attnlab.system.background import Background


def test_functions_are_called_in_order_in_one_thread():
    background, calls = Background(), []
    futures = [background.submit(lambda n=n: calls.append(n) or threading.current_thread()) for n in range(3)]
    threads = {future.result() for future in futures}
    background.close()
    assert calls == [0, 1, 2]
    assert len(threads) == 1
    assert threading.current_thread() not in threads


def test_an_error_is_raised_by_its_result_and_the_next_function_is_called():
    background = Background()
    wrong, right = background.submit(lambda: 1 / 0), background.submit(lambda: 2)
    with pytest.raises(ZeroDivisionError):
        wrong.result()
    assert right.result() == 2
    background.close()


def test_closing_cancels_what_has_not_begun():
    background, begun, go_on = Background(), threading.Event(), threading.Event()
    first = background.submit(lambda: (begun.set(), go_on.wait(60)))
    second = background.submit(lambda: pytest.fail("called after closing"))
    assert begun.wait(60)
    background.close(wait=False)
    go_on.set()
    assert first.result()[1]
    with pytest.raises(CancelledError):
        second.result()
    background.close()


def test_settings_of_one_thread_cancel_everything():
    """In the other thread, jax would compute in 32 bits."""
    with jax.enable_x64(True):
        background = Background()
        future = background.submit(lambda: pytest.fail("called with other settings"))
        with pytest.raises(CancelledError):
            future.result()
        background.close()
