"""The fused kernels of `jointwise.engines.cuda`, in triton; imported only on a machine with a card."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def posterior_kernel(
    codes, n, first, last, n_columns, starts, log_tables, log_mixing, weights, sums, row_sums, n_tables, n_padded,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, WEIGHTED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Add the posteriors of ROWS rows from `first` on to one of `n_tables` tables of counts.

    codes (columns, n), log_tables (n_padded, WIDTH), sums (n_tables, n_padded, WIDTH), row_sums (programs, WIDTH + 1).
    """
    program = tl.program_id(0)
    row = first + program.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = row < last
    component = tl.arange(0, WIDTH)
    logs = tl.zeros((ROWS, WIDTH), tl.float32) + tl.load(log_mixing + component)[None, :]
    for column in range(n_columns):
        code = tl.load(codes + column.to(tl.int64) * n + row, mask=here, other=0).to(tl.int32)
        if WIDE:
            code = code & 0xFFFF
        position = (tl.load(starts + column) + code) * WIDTH
        logs += tl.load(log_tables + position[:, None] + component[None, :])
    largest = tl.max(logs, axis=1)
    posterior = tl.exp(logs - largest[:, None])
    total = tl.sum(posterior, axis=1)
    weight = tl.where(here, 1.0, 0.0)
    if WEIGHTED:
        weight = tl.load(weights + row, mask=here, other=0.0)
    posterior *= (weight / total)[:, None]
    tl.store(row_sums + program.to(tl.int64) * (WIDTH + 1) + component, tl.sum(posterior, axis=0))
    tl.store(row_sums + program.to(tl.int64) * (WIDTH + 1) + WIDTH, tl.sum(weight * (tl.log(total) + largest)))
    table = sums + (program % n_tables).to(tl.int64) * n_padded * WIDTH
    for column in range(n_columns):
        code = tl.load(codes + column.to(tl.int64) * n + row, mask=here, other=0).to(tl.int32)
        if WIDE:
            code = code & 0xFFFF
        position = (tl.load(starts + column) + code) * WIDTH
        tl.atomic_add(table + position[:, None] + component[None, :], posterior, mask=here[:, None], sem="relaxed")


@triton.jit
def pair_kernel(
    codes, n, plan, weights, sums, n_tables, n_cells,
    ROWS: tl.constexpr, WEIGHTED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Add the codes of ROWS rows, for one pair of columns, to one of `n_tables` sets of tables.

    codes (columns, n), plan (pairs, 4): first column, second column, start of the pair's table, width of that table;
    sums (n_tables, n_cells).
    """
    program = tl.program_id(0)
    own = plan + tl.program_id(1) * 4
    row = program.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = row < n
    first = tl.load(codes + tl.load(own) * n + row, mask=here, other=0).to(tl.int32)
    second = tl.load(codes + tl.load(own + 1) * n + row, mask=here, other=0).to(tl.int32)
    if WIDE:
        first = first & 0xFFFF
        second = second & 0xFFFF
    cell = tl.load(own + 2) + first.to(tl.int64) * tl.load(own + 3) + second
    if WEIGHTED:
        amount = tl.load(weights + row, mask=here, other=0.0).to(tl.float64)
    else:
        amount = tl.full((ROWS,), 1, tl.int64)
    tl.atomic_add(sums + (program % n_tables).to(tl.int64) * n_cells + cell, amount, mask=here, sem="relaxed")
