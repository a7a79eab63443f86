"""One thread for products of matrices within, and as many as before after it."""

from threadpoolctl import threadpool_info, threadpool_limits

from jointwise.engines.blas import one_blas_thread


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_there_is_one_thread_within():
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert blas_threads() == {1}
            with one_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}
